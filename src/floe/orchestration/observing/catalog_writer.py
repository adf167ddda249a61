"""Write reports to the catalog through the event door, with column lineage."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from floe.catalog.errors import DatasetNotFoundError, VersionNotFoundError
from floe.catalog.schemas import Column, list_columns, store_schemas
from floe.catalog.version_queries import get_version_of
from floe.catalog.versions import record_rejected, reject_ready
from floe.events.ingest import MAX_GROUP, read_claim
from floe.execution.column_lineage import OutputLineage, SqlStep, to_facet, trace
from floe.execution.workspace import Workspace
from floe.orchestration.observing.asset_index import AssetIndex
from floe.orchestration.observing.event_encoding import encode_event
from floe.orchestration.observing.reports import Input, Output, Report
from floe.orchestration.observing.translation import CHECK
from floe.spec.identity import ProcessId, lake_table

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from floe.catalog.recording import EventClaim

ACTOR = "floe_observer"

Facet = Mapping[str, Any]
Columns = Sequence[Any]
"""Columns of which only the names are used."""


def write_reports(
    workspace: Workspace, index: AssetIndex, job: ProcessId, reports: Sequence[Report]
) -> None:
    """Write the reports of a Dagster run in order; they are committed on return."""
    writer = _Writer(workspace, job, reports)
    tests = frozenset(index.tests.values())
    for report in reports:
        # A bad version is rejected before it is reported, so that nothing starts from it.
        for output in report.outputs:
            if output.rejected:
                writer.flush()
                _reject_output(workspace, report, output)
        writer.add(report)
        if _is_failed_check(report) and report.run.process in tests:
            writer.flush()
            for read in report.inputs:
                _reject_input(workspace, read)
    writer.flush()


class _Writer:
    """Collects events, so that many share a transaction."""

    def __init__(self, workspace: Workspace, job: ProcessId, reports: Sequence[Report]) -> None:
        self._workspace, self._job = workspace, job
        self._tracer = _ColumnTracer(workspace, reports)
        self._claims: list[EventClaim] = []

    def add(self, report: Report) -> None:
        """Add an event to the group; a full group is written."""
        report, columns = self._tracer.trace(report)
        body = encode_event(report, self._workspace.lake, self._job, columns)
        self._claims.append(read_claim(body))
        if len(self._claims) >= MAX_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write the group."""
        claims, self._claims = self._claims, []
        if claims:
            for error in self._workspace.door.submit(claims).result().values():
                raise error


def _is_failed_check(report: Report) -> bool:
    return report.run.job_type == CHECK and report.kind == "FAIL"


def _reject_output(workspace: Workspace, report: Report, output: Output) -> None:
    """Record a version that is already in the lake and failed its tests."""
    with workspace.catalog.writing() as session:
        record_rejected(
            session,
            workspace.dataset_id(output.dataset, session),
            report.run.business_date,
            output.tag,
            reason=output.rejected,
            actor=ACTOR,
            row_count=output.rows,
            size_bytes=output.size,
            schema_hash=store_schemas(session, [output.columns])[0] if output.columns else None,
            produced_by_run_id=report.run.run_id,
        )


def _reject_input(workspace: Workspace, read: Input) -> None:
    """Reject a READY version whose test failed when it was run again later."""
    failed = [verdict.name for verdict in read.verdicts if verdict.strict and not verdict.passed]
    if not read.tag or not failed:
        return
    with workspace.catalog.writing() as session:
        dataset_id = workspace.dataset_id(read.dataset, session)
        reason = "; ".join(f"{name} failed" for name in failed)
        reject_ready(session, dataset_id, read.tag, reason=reason, actor=ACTOR)


class _ColumnTracer:
    """Traces columns through the models of a run: their SQL on the schemas they read."""

    def __init__(self, workspace: Workspace, reports: Sequence[Report]) -> None:
        self._workspace = workspace
        # A model may be reported before those that it reads, which wait for their tests.
        self._reported: dict[tuple[str, str], Columns] = {
            (output.dataset, output.tag): output.columns
            for report in reports
            for output in report.outputs
        }
        """The columns of the versions in these reports."""

    def trace(self, report: Report) -> tuple[Report, dict[str, Facet]]:
        """Return a report with the columns of its output, and their lineage by dataset.

        Unknown lineage is left out. If the report has no columns, they have the names that the
        SQL gives them, and no type.
        """
        if not self._is_traced(report):
            return report, {}
        (output,) = report.outputs
        aliases = self._aliases(report.inputs)
        schemas = self._schemas(report.inputs)
        inputs = {alias: schemas[dataset] for alias, dataset in aliases.items()}
        steps = [SqlStep(output.dataset, report.sql)]
        lineage = trace(steps, inputs, {output.dataset: output.columns})[output.dataset]
        datasets = {alias: (self._workspace.lake, dataset) for alias, dataset in aliases.items()}
        facet = to_facet(lineage, datasets)
        output = _with_columns(output, lineage)
        self._reported[output.dataset, output.tag] = output.columns
        facets: dict[str, Facet] = {} if facet is None else {output.dataset: facet}
        return replace(report, outputs=[output]), facets

    def _is_traced(self, report: Report) -> bool:
        enabled = self._workspace.site.spec.observability.column_lineage
        has_output = report.kind == "COMPLETE" and len(report.outputs) == 1
        return enabled and has_output and report.sql is not None

    def _aliases(self, inputs: Sequence[Input]) -> dict[str, str]:
        """Return the dataset for each name that SQL may use for it."""
        lake = self._workspace.lake
        tables = {read.dataset: ".".join(lake_table(read.dataset)) for read in inputs}
        return {
            alias: dataset
            for dataset, table in tables.items()
            for alias in (dataset, table, f"{lake}.{table}")
        }

    def _schemas(self, inputs: Sequence[Input]) -> dict[str, Columns]:
        with self._workspace.catalog.reading() as session:
            return {read.dataset: self._columns(session, read) for read in inputs}

    def _columns(self, session: "Session", read: Input) -> Columns:
        """Return the columns of the version that was read, else the declared ones."""
        columns = self._reported.get((read.dataset, read.tag)) or self._stored(session, read)
        spec = self._workspace.site.spec.datasets.get(read.dataset)
        return columns or (spec.columns if spec is not None else ())

    def _stored(self, session: "Session", read: Input) -> Columns:
        if not read.tag:
            return ()
        try:
            dataset_id = self._workspace.dataset_id(read.dataset, session)
            schema_hash = get_version_of(session, dataset_id, read.tag).schema_hash
        except (DatasetNotFoundError, VersionNotFoundError):
            return ()
        return list_columns(session, schema_hash) if schema_hash else ()


def _with_columns(output: Output, lineage: OutputLineage) -> Output:
    if output.columns or lineage.unknown is not None:
        return output
    return replace(output, columns=[Column(name, "") for name in lineage.columns])
