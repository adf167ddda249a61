"""What floe's own runs report, through the same door as everybody else's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec

from floe import __version__, clock
from floe.catalog.schemas import Column
from floe.events.ingest import read_claim
from floe.execution.workspace import Workspace
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
    """A version that a run made."""

    dataset: str
    tag: str
    rows: int | None = None
    size: int | None = None
    columns: Sequence[Column] = ()
    column_lineage: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class RunFacts:
    """What is the same in every event of a run."""

    run_id: str
    process: str
    business_date: date
    facet: Mapping[str, Any]
    """floe's own facet: alias by alias what was read, parameters, who holds the run."""
    parent: str | None = None
    inputs: Sequence[ReportedInput] = ()
    sql: str | None = None


@dataclass(frozen=True)
class Failure:
    """Why a run failed."""

    message: str
    trace: str = ""


class Reporter:
    """Writes the events of runs, each committed when the call returns."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def started(self, facts: RunFacts) -> None:
        """Say that a run has begun, and what it reads."""
        self._send("START", facts)

    def completed(self, facts: RunFacts, outputs: Sequence[ReportedOutput]) -> None:
        """Say that a run has made its outputs."""
        self._send("COMPLETE", facts, outputs)

    def failed(self, facts: RunFacts, failure: Failure) -> None:
        """Say that a run has failed, and why."""
        self._send("FAIL", facts, failure=failure)

    def aborted(self, facts: RunFacts, failure: Failure) -> None:
        """Say that a run was stopped."""
        self._send("ABORT", facts, failure=failure)

    def _send(
        self,
        kind: str,
        facts: RunFacts,
        outputs: Sequence[ReportedOutput] = (),
        failure: Failure | None = None,
    ) -> None:
        event = self._event(kind, facts, outputs, failure)
        claim = read_claim(msgspec.json.encode(event))
        for wrong in self._workspace.door.submit([claim]).result().values():
            raise wrong

    def _event(
        self,
        kind: str,
        facts: RunFacts,
        outputs: Sequence[ReportedOutput],
        failure: Failure | None,
    ) -> dict[str, Any]:
        project = self._workspace.site.spec.name
        job = floe_process(project, facts.process)
        return {
            "eventType": kind,
            "eventTime": clock.now().isoformat(),
            "producer": PRODUCER,
            "schemaURL": SCHEMA_URL,
            "run": {"runId": facts.run_id, "facets": self._run_facets(facts, failure)},
            "job": {"namespace": job.namespace, "name": job.name, "facets": _job_facets(facts)},
            "inputs": [self._input(one) for one in facts.inputs],
            "outputs": [self._output(one) for one in outputs],
        }

    def _run_facets(self, facts: RunFacts, failure: Failure | None) -> dict[str, Any]:
        own = {"businessDate": facts.business_date.isoformat(), **facts.facet}
        facets = {"floe": _facet(own, "floe")}
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

    def _input(self, one: ReportedInput) -> dict[str, Any]:
        return self._dataset(one.dataset, one.tag, one.columns)

    def _output(self, one: ReportedOutput) -> dict[str, Any]:
        dataset = self._dataset(one.dataset, one.tag, one.columns)
        if one.column_lineage:
            dataset["facets"]["columnLineage"] = _facet(
                dict(one.column_lineage), "ColumnLineageDatasetFacet"
            )
        counts = {"rowCount": one.rows, "size": one.size}
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
