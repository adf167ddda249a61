"""Choose a version, show its first rows, compare two versions."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floe.catalog.datasets import find_dataset
from floe.catalog.errors import DatasetNotFoundError
from floe.catalog.schemas import Column, SchemaDiff, diff_schemas, list_columns
from floe.catalog.tables import DatasetVersion
from floe.catalog.version_queries import (
    StateEvent,
    describe_state,
    get_version,
    get_version_of,
    latest_ready,
)
from floe.catalog.versions import (
    ABANDONED,
    EXTERNAL,
    PUBLISHING,
    READY,
    REJECTED,
    RETRACTED,
    SUPERSEDED,
    VACUUMED,
    WRITING,
    WRITTEN,
)
from floe.errors import FloeError
from floe.execution.formats.delivery_errors import version_read
from floe.execution.formats.registry import format_named
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.masking import Covered, apply_policies, cover_columns
from floe.execution.versions.version_access import stored_version
from floe.execution.workspace import Workspace
from floe.spec import DatasetSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession
    from sqlalchemy.orm import Session

AS_JSON = {
    "ignoreNullFields": "false",
    # Spark's own formats end with milliseconds.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
READABLE = frozenset({READY, SUPERSEDED, WRITTEN})
_WHY_NOT = {
    RETRACTED: "was retracted",
    REJECTED: "did not pass its checks and was rejected",
    VACUUMED: "was vacuumed, so its data is gone",
    ABANDONED: "was never finished",
    WRITING: "is being written",
    PUBLISHING: "is being published",
    EXTERNAL: "was read by a run but never announced",
}


class NoReadyVersionError(FloeError):
    """A dataset has no READY version."""

    def __init__(self, dataset: str) -> None:
        super().__init__(
            f"'{dataset}' has no READY version. List its versions with: floe versions {dataset}"
        )


class VersionNotReadableError(FloeError):
    """A version is in a state in which it must not be read."""

    def __init__(self, dataset: str, tag: str, state: str, event: StateEvent | None) -> None:
        parts = [f"Version {tag} of '{dataset}' {_WHY_NOT.get(state, f'is {state}')}"]
        if event is not None:
            parts.append(f" on {event.occurred_at:%Y-%m-%d %H:%M}Z")
            parts.append(f" by {event.actor}" if event.actor else "")
            parts.append(f": {event.reason}" if event.reason else "")
        parts.append(f". List the versions with: floe versions {dataset}")
        super().__init__("".join(parts))


@dataclass(frozen=True)
class Preview:
    """The first rows of a version, each as a JSON object."""

    dataset: str
    tag: str
    state: str
    columns: tuple[str, ...]
    lines: Sequence[str]
    row_count: int | None
    covered: Sequence[Covered] = ()
    """The columns that are masked, hashed or dropped for this reader."""


def choose_version(
    session: "Session", workspace: Workspace, dataset: str, tag: str | None = None
) -> DatasetVersion:
    """Return a version by tag, or the newest READY one; raise if it must not be read."""
    dataset_id = workspace.dataset_id(dataset)
    if tag is None:
        newest = latest_ready(session, dataset_id)
        if newest is None:
            raise NoReadyVersionError(dataset)
        return newest
    version = get_version_of(session, dataset_id, tag)
    if version.state not in READABLE:
        event = describe_state(session, version)
        raise VersionNotReadableError(dataset, tag, version.state, event)
    return version


def declared_or_seen(workspace: Workspace, dataset: str) -> DatasetSpec:
    """Return a dataset's declaration; one that only the catalog knows is a lake table."""
    if dataset not in workspace.site.spec.datasets:
        try:
            workspace.dataset_id(dataset)
        except DatasetNotFoundError:
            return workspace.dataset(dataset)
        return DatasetSpec()
    return workspace.dataset(dataset)


def read_version(
    workspace: Workspace, spark: "SparkSession", dataset: str, version: DatasetVersion
) -> "DataFrame":
    """Return the rows of a version as a frame."""
    spec = declared_or_seen(workspace, dataset)
    stored = stored_version(workspace, dataset, version, spec)
    return format_named(spec.format).read(workspace.site, spark, stored)


def preview_version(
    workspace: Workspace,
    sparks: SparkSessions,
    dataset: str,
    *,
    tag: str | None = None,
    limit: int = 20,
    roles: Collection[str] = (),
) -> Preview:
    """Return the first rows of a version, masked for the reader's roles.

    Raises before Spark is started if the version cannot be read.
    """
    covered_for(workspace, dataset, (), roles)
    with workspace.catalog.reading() as session:
        version = choose_version(session, workspace, dataset, tag)
    with sparks.session() as spark:
        return _first_rows(workspace, spark, dataset, version, limit=limit, roles=roles)


def covered_for(
    workspace: Workspace, dataset: str, columns: Sequence[str], roles: Collection[str]
) -> list[Covered]:
    """Return the columns a reader may not see; raise if the dataset is restricted."""
    governance = workspace.site.spec.governance
    spec = declared_or_seen(workspace, dataset)
    return cover_columns(governance, dataset, spec, columns, roles)


def _first_rows(
    workspace: Workspace,
    spark: "SparkSession",
    dataset: str,
    version: DatasetVersion,
    *,
    limit: int,
    roles: Collection[str],
) -> Preview:
    from pyspark.sql import functions as F  # noqa: N812

    with version_read(workspace.site, dataset, version.version_tag):
        data = read_version(workspace, spark, dataset, version)
        covered = covered_for(workspace, dataset, data.columns, roles)
        frame = apply_policies(data.limit(limit), covered)
        # Spark converts every type to JSON, decimals without loss.
        whole = F.to_json(F.struct("*"), AS_JSON)
        rows = frame.select(whole).collect()
    return Preview(
        dataset,
        version.version_tag,
        version.state,
        tuple(frame.columns),
        [row[0] for row in rows],
        version.row_count,
        covered,
    )


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    tag: str
    state: str
    rows: int | None
    bytes: int | None
    columns: tuple[Column, ...] | None
    """None if the columns are unknown."""


@dataclass(frozen=True)
class Comparison:
    """The differences between two versions."""

    dataset: str
    before: Side
    after: Side
    schema: SchemaDiff | None
    """None if the columns of either version are unknown."""

    @property
    def more_rows(self) -> int | None:
        return _difference(self.before.rows, self.after.rows)

    @property
    def more_bytes(self) -> int | None:
        return _difference(self.before.bytes, self.after.bytes)


def compare_versions(session: "Session", name: str, before: str, after: str) -> Comparison:
    """Compare two versions from the catalog alone."""
    dataset = find_dataset(session, name)
    first, second = (_side(session, get_version(session, dataset, tag)) for tag in (before, after))
    known = first.columns is not None and second.columns is not None
    schema = diff_schemas(first.columns or (), second.columns or ()) if known else None
    return Comparison(dataset.name, first, second, schema)


def _side(session: "Session", version: DatasetVersion) -> Side:
    columns = tuple(list_columns(session, version.schema_hash))
    return Side(
        version.version_tag,
        version.state,
        version.row_count,
        version.size_bytes,
        columns or None,
    )


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
