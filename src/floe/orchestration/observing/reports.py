"""Reports of observed runs: process, inputs, outputs, result and span."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from floe.catalog.schemas import Column
from floe.execution.spans import Span, run_span
from floe.spec.identity import ProcessId

Kind = Literal["START", "COMPLETE", "FAIL", "ABORT"]


@dataclass(frozen=True)
class Verdict:
    """The result of a check."""

    name: str
    passed: bool
    strict: bool
    message: str = ""


@dataclass(frozen=True)
class Input:
    """A dataset that was read; the tag is empty if the version is unknown."""

    dataset: str
    tag: str = ""
    verdicts: Sequence[Verdict] = ()


@dataclass(frozen=True)
class Output:
    """A version that was written; without a tag, the catalog assigns one."""

    dataset: str
    tag: str = ""
    rows: int | None = None
    size: int | None = None
    columns: Sequence[Column] = ()
    rejected: str = ""
    """Why the version is rejected, although it is already in the lake."""


@dataclass(frozen=True)
class Failure:
    """Why a run failed."""

    message: str
    trace: str = ""


@dataclass(frozen=True)
class ObservedRun:
    """The part that all reports of a run have in common."""

    run_id: str
    process: ProcessId
    dagster_run: str
    started_at: datetime
    business_date: date
    job_type: str
    partition: str | None = None
    step: str | None = None
    """None for the Dagster run itself."""
    attempt: int = 1


@dataclass(frozen=True)
class Report:
    """The start or the end of a run."""

    position: int
    """The record of the Dagster run's event log from which this follows."""
    kind: Kind
    at: datetime
    run: ObservedRun
    inputs: Sequence[Input] = ()
    outputs: Sequence[Output] = ()
    failure: Failure | None = None
    sql: str | None = None


def span_of(report: Report) -> Span:
    """Return the span of a report's run: the Dagster run is the trace's root."""
    run = report.run
    return run_span(
        run.run_id,
        None if run.step is None else run.dagster_run,
        run.process.name,
        run.started_at,
        None if report.kind == "START" else report.at,
        error=report.failure.message if report.failure else None,
        attributes={
            "floe.process": run.process.key,
            "floe.run": run.run_id,
            "floe.business_date": run.business_date.isoformat(),
            "floe.partition": run.partition,
            "floe.attempt": run.attempt,
            "floe.outputs": [f"{out.dataset}@{out.tag}" for out in report.outputs] or None,
            "floe.rows": sum(out.rows or 0 for out in report.outputs) or None,
            "dagster.run_id": run.dagster_run,
            "dagster.step_key": run.step,
        },
    )
