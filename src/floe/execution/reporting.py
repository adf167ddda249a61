"""Report floe's own runs: OpenLineage events through the event door, and run logs."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

import msgspec

from floe import __version__, clock
from floe.catalog.schemas import Column
from floe.events.ingest import read_claim
from floe.execution.spans import Span, run_span, span_exporter
from floe.execution.workspace import Workspace
from floe.settings import make_private_folder
from floe.spec.identity import floe_process

PRODUCER = f"https://floe.example.com/v{__version__}"
SCHEMA_URL = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACETS = "https://openlineage.io/spec/facets/1-0-0"


@dataclass(frozen=True)
class ReportedInput:
    """A version that a run read."""

    dataset: str
    tag: str
    columns: Sequence[Column] = ()


@dataclass(frozen=True)
class ReportedOutput:
    """A version that a run published."""

    dataset: str
    tag: str
    rows: int | None = None
    size: int | None = None
    columns: Sequence[Column] = ()
    column_lineage: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class RunFacts:
    """The part that is the same in all events of a run."""

    run_id: str
    process: str
    business_date: date
    facet: Mapping[str, Any]
    """floe's own facet: the tags read by alias, parameters, the holder of the run."""
    parent: str | None = None
    inputs: Sequence[ReportedInput] = ()
    sql: str | None = None
    started_at: datetime = field(default_factory=clock.now)


@dataclass(frozen=True)
class Failure:
    """Why a run failed."""

    message: str
    trace: str = ""


class Reporter:
    """Writes the events of runs. Each is committed when the call returns."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def started(self, facts: RunFacts) -> None:
        """Report that a run started, and what it reads."""
        self._send("START", facts)

    def completed(self, facts: RunFacts, outputs: Sequence[ReportedOutput]) -> None:
        """Report that a run succeeded, with its outputs."""
        self._send("COMPLETE", facts, outputs)

    def failed(self, facts: RunFacts, failure: Failure) -> None:
        """Report that a run failed, and why."""
        self._send("FAIL", facts, failure=failure)

    def aborted(self, facts: RunFacts, failure: Failure) -> None:
        """Report that a run was stopped."""
        self._send("ABORT", facts, failure=failure)

    def _send(
        self,
        kind: str,
        facts: RunFacts,
        outputs: Sequence[ReportedOutput] = (),
        failure: Failure | None = None,
    ) -> None:
        span = self._span(kind, facts, outputs, failure)
        event = self._event(kind, facts, outputs, failure, span)
        claim = read_claim(msgspec.json.encode(event))
        for wrong in self._workspace.door.submit([claim]).result().values():
            raise wrong
        # After the commit: a collector that is down delays the run, but loses nothing.
        export = None if span.end is None else span_exporter(self._workspace.site)
        if export is not None:
            export([span])

    def _span(
        self,
        kind: str,
        facts: RunFacts,
        outputs: Sequence[ReportedOutput],
        failure: Failure | None,
    ) -> Span:
        process = floe_process(self._workspace.site.spec.name, facts.process)
        return run_span(
            facts.run_id,
            facts.parent,
            process.name,
            facts.started_at,
            None if kind == "START" else clock.now(),
            error=failure.message if failure else None,
            attributes={
                "floe.process": process.key,
                "floe.run": facts.run_id,
                "floe.business_date": facts.business_date.isoformat(),
                "floe.partition": facts.facet.get("partition"),
                "floe.attempt": facts.facet.get("attempt", 1),
                "floe.outputs": [f"{output.dataset}@{output.tag}" for output in outputs] or None,
                "floe.rows": sum(output.rows or 0 for output in outputs) or None,
            },
        )

    def _event(
        self,
        kind: str,
        facts: RunFacts,
        outputs: Sequence[ReportedOutput],
        failure: Failure | None,
        span: Span,
    ) -> dict[str, Any]:
        project = self._workspace.site.spec.name
        job = floe_process(project, facts.process)
        return {
            "eventType": kind,
            "eventTime": clock.now().isoformat(),
            "producer": PRODUCER,
            "schemaURL": SCHEMA_URL,
            "run": {"runId": facts.run_id, "facets": self._run_facets(facts, failure, span)},
            "job": {"namespace": job.namespace, "name": job.name, "facets": _job_facets(facts)},
            "inputs": [self._input(reported) for reported in facts.inputs],
            "outputs": [self._output(reported) for reported in outputs],
        }

    def _run_facets(self, facts: RunFacts, failure: Failure | None, span: Span) -> dict[str, Any]:
        own = {"businessDate": facts.business_date.isoformat(), **facts.facet}
        facets = {"floe": _facet(own, "floe"), "trace": _facet(span.facet(), "floe-trace")}
        if facts.parent is not None:
            job = {"namespace": f"floe/{self._workspace.site.spec.name}", "name": "run"}
            facets["parent"] = _facet(
                {"run": {"runId": facts.parent}, "job": job}, "ParentRunFacet"
            )
        if failure is not None:
            error = {
                "message": failure.message,
                "programmingLanguage": "python",
                "stackTrace": failure.trace,
            }
            facets["errorMessage"] = _facet(error, "ErrorMessageRunFacet")
        return facets

    def _input(self, reported: ReportedInput) -> dict[str, Any]:
        return self._dataset(reported.dataset, reported.tag, reported.columns)

    def _output(self, reported: ReportedOutput) -> dict[str, Any]:
        dataset = self._dataset(reported.dataset, reported.tag, reported.columns)
        if reported.column_lineage:
            dataset["facets"]["columnLineage"] = _facet(
                dict(reported.column_lineage), "ColumnLineageDatasetFacet"
            )
        counts = {"rowCount": reported.rows, "size": reported.size}
        known = {name: count for name, count in counts.items() if count is not None}
        if known:
            statistics = _facet(known, "OutputStatisticsOutputDatasetFacet")
            dataset["outputFacets"] = {"outputStatistics": statistics}
        return dataset

    def _dataset(self, name: str, tag: str, columns: Sequence[Column]) -> dict[str, Any]:
        facets = {"version": _facet({"datasetVersion": tag}, "DatasetVersionDatasetFacet")}
        if columns:
            fields = [{"name": column.name, "type": column.type} for column in columns]
            facets["schema"] = _facet({"fields": fields}, "SchemaDatasetFacet")
        return {"namespace": self._workspace.lake, "name": name, "facets": facets}


def _job_facets(facts: RunFacts) -> dict[str, Any]:
    kind = {"processingType": "BATCH", "integration": "FLOE", "jobType": "PROCESS"}
    facets = {"jobType": _facet(kind, "JobTypeJobFacet")}
    if facts.sql is not None:
        facets["sql"] = _facet({"query": facts.sql}, "SQLJobFacet")
    return facets


def _facet(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": f"{FACETS}/{name}.json", **content}


Listener = Callable[[str], None]


def run_log_path(state_dir: Path, run_id: str) -> Path:
    """Return the path of a run's log."""
    return state_dir / "logs" / "runs" / f"{run_id}.log"


class RunLog:
    """The log of a run. Thread-safe; written line by line, so a killed run keeps it."""

    def __init__(self, path: Path, listener: Listener | None = None) -> None:
        make_private_folder(path.parent)
        self.path = path
        self._listener = listener
        self._lock = threading.Lock()
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def say(self, line: str) -> None:
        """Write a line with a timestamp."""
        with self._lock:
            self._file.write(f"{clock.now().isoformat(timespec='milliseconds')} {line}\n")
        if self._listener is not None:
            self._listener(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
