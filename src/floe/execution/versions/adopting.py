"""Take over what a process wrote by itself where its version was to live."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from floe.execution.formats.contract import Adopts, Written
from floe.execution.versions.drafts import Draft, columns_of, enforce_contract
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


def adopt_draft(
    workspace: Workspace,
    spark: "SparkSession",
    draft: Draft,
    rows: int | None,
    details: Mapping[str, Any],
) -> Draft:
    """Have the format complete what is there, and hold it against the dataset's schema."""
    place = replace(draft.place, details={**draft.place.details, **details})
    written = Written(rows, None, place.details)
    if isinstance(draft.format, Adopts):
        written = draft.format.adopt(workspace.site, spark, place)
    place = replace(place, details={**place.details, **written.details})
    draft = replace(draft, place=place, written=written)
    frame = draft.format.read_draft(workspace.site, spark, place)
    enforce_contract(workspace, draft, frame)
    return replace(draft, columns=columns_of(place, frame))
