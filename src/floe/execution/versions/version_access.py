"""Map a catalog row to its stored version, format, lease and writing session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from floe.catalog.stable_names import details_of
from floe.catalog.tables import DatasetVersion
from floe.execution.formats.contract import Format, StoredVersion
from floe.execution.formats.registry import format_named
from floe.execution.spark.session import SparkSessions
from floe.execution.workspace import Workspace
from floe.spec import DatasetSpec
from floe.spec.identity import DatasetId

SESSION, COMPUTE = "session", "compute"


def stored_version(
    workspace: Workspace, dataset: str, version: DatasetVersion, spec: DatasetSpec | None = None
) -> StoredVersion:
    """Return where a version is stored; `spec` overrides the declaration in floe.yaml."""
    assert version.business_date is not None
    return StoredVersion(
        dataset=dataset,
        spec=workspace.dataset(dataset) if spec is None else spec,
        tag=version.version_tag,
        business_date=version.business_date,
        partition=version.partition_key,
        path=version.path,
        details=details_of(version),
        run_id=version.produced_by_run_id,
    )


def format_of(workspace: Workspace, dataset: str) -> Format:
    """Return the format of a dataset."""
    return format_named(workspace.dataset(dataset).format)


def table_lease(workspace: Workspace, dataset: str) -> str:
    """Return the name of the lease that writers of a dataset hold."""
    return f"table/{DatasetId(workspace.lake, dataset).full_name}"[:300]


@dataclass(frozen=True)
class WriterSession:
    """A writing Spark session: its id, and the compute profile of its server."""

    session_id: str
    profile: str | None = None

    @property
    def details(self) -> dict[str, Any]:
        """The part that is stored with the version."""
        return {SESSION: self.session_id} | ({COMPUTE: self.profile} if self.profile else {})


def end_writer(sparks: SparkSessions, details: Mapping[str, Any]) -> None:
    """End the Spark session that a dead writer of a version left running."""
    session_id, profile = details.get(SESSION), details.get(COMPUTE)
    if isinstance(session_id, str):
        sparks.end(session_id, profile=profile)
