"""From the catalog's row of a version to where the version lives, and back."""

from collections.abc import Mapping
from typing import Any

from floe.catalog.tables import DatasetVersion
from floe.execution.formats.contract import Format, VersionPlace
from floe.execution.formats.registry import format_named
from floe.execution.workspace import Workspace
from floe.spec import DatasetSpec

OWN = "floe"
"""The part of a version's metadata that is the format's own note; the rest is others'."""


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


def details_of(version: DatasetVersion) -> Mapping[str, Any]:
    """Return what the format noted of a version."""
    own = (version.metadata_json or {}).get(OWN)
    return own if isinstance(own, dict) else {}


def with_details(version: DatasetVersion, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return a version's metadata with the format's note renewed."""
    return {**(version.metadata_json or {}), OWN: dict(details)}


def format_of(workspace: Workspace, dataset: str) -> Format:
    """Return the format of a dataset."""
    return format_named(workspace.dataset(dataset).format)
