"""Where the columns of dbt models come from: SQL, on the schemas that inputs really had."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from floe.catalog.errors import DatasetNotFoundError, VersionNotFoundError
from floe.catalog.schemas import Column, list_columns
from floe.catalog.versions import get_version_of
from floe.execution.column_lineage import OutputLineage, SqlStep, to_facet, trace
from floe.execution.workspace import Workspace
from floe.orchestration.observing.reports import Read, Report, Written
from floe.spec.identity import lake_table

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

Facet = Mapping[str, Any]
Names = Sequence[Any]
"""Columns, of which the names are all that counts."""


class Tracer:
    """Follows columns through the models of a run, in the order in which they were made."""

    def __init__(self, workspace: Workspace, reports: Sequence[Report]) -> None:
        self._workspace = workspace
        # A model may be told of before those that it reads, which wait for their tests.
        self._made: dict[tuple[str, str], Names] = {
            (one.dataset, one.tag): one.columns for report in reports for one in report.written
        }
        """The columns of versions that are told of now."""

    def trace(self, report: Report) -> tuple[Report, dict[str, Facet]]:
        """Return a report with the columns of what was made, and where they come from.

        What is not known is left out. Columns that nobody has told of have the names that the SQL
        gives them, and no type.
        """
        if not self._is_traced(report):
            return report, {}
        (made,) = report.written
        named = self._names(report.reads)
        schemas = self._schemas(report.reads)
        inputs = {name: schemas[dataset] for name, dataset in named.items()}
        steps = [SqlStep(made.dataset, report.sql)]
        traced = trace(steps, inputs, {made.dataset: made.columns})[made.dataset]
        datasets = {name: (self._workspace.lake, dataset) for name, dataset in named.items()}
        facet = to_facet(traced, datasets)
        made = _with_columns(made, traced)
        self._made[made.dataset, made.tag] = made.columns
        known: dict[str, Facet] = {} if facet is None else {made.dataset: facet}
        return replace(report, written=[made]), known

    def _is_traced(self, report: Report) -> bool:
        wanted = self._workspace.site.spec.observability.column_lineage
        made = report.kind == "COMPLETE" and len(report.written) == 1
        return wanted and made and report.sql is not None

    def _names(self, reads: Sequence[Read]) -> dict[str, str]:
        """Return the names by which SQL may call what is read: with lake and schema, or not."""
        lake = self._workspace.lake
        tables = {one.dataset: ".".join(lake_table(one.dataset)) for one in reads}
        return {
            name: dataset
            for dataset, table in tables.items()
            for name in (dataset, table, f"{lake}.{table}")
        }

    def _schemas(self, reads: Sequence[Read]) -> dict[str, Names]:
        with self._workspace.catalog.reading() as session:
            return {one.dataset: self._columns(session, one) for one in reads}

    def _columns(self, session: "Session", read: Read) -> Names:
        """The columns of the version that was read, else those that are declared."""
        found = self._made.get((read.dataset, read.tag)) or self._stored(session, read)
        spec = self._workspace.site.spec.datasets.get(read.dataset)
        return found or (spec.columns if spec is not None else ())

    def _stored(self, session: "Session", read: Read) -> Names:
        if not read.tag:
            return ()
        try:
            number = self._workspace.dataset_id(read.dataset, session)
            found = get_version_of(session, number, read.tag).schema_hash
        except (DatasetNotFoundError, VersionNotFoundError):
            return ()
        return list_columns(session, found) if found else ()


def _with_columns(made: Written, traced: OutputLineage) -> Written:
    if made.columns or traced.unknown is not None:
        return made
    return replace(made, columns=[Column(name, "") for name in traced.columns])
