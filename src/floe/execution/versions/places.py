"""From the catalog's row of a version to where the version lives, and back."""

from floe.catalog.shown import details_of
from floe.catalog.tables import DatasetVersion
from floe.execution.formats.contract import Format, VersionPlace
from floe.execution.formats.registry import format_named
from floe.execution.workspace import Workspace
from floe.spec import DatasetSpec


def place_of(
    workspace: Workspace, dataset: str, version: DatasetVersion, spec: DatasetSpec | None = None
) -> VersionPlace:
    """Return where a version lives, of a dataset as floe.yaml declares it unless `spec` does."""
    assert version.business_date is not None
    return VersionPlace(
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
