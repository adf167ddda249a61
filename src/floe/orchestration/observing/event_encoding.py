"""Encode reports as OpenLineage events.

The same report gives the same event, byte for byte, whenever it is encoded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from floe.catalog.schemas import Column
from floe.execution.reporting import FACETS, PRODUCER, SCHEMA_URL
from floe.orchestration.observing.reports import Input, Output, Report, Verdict, span_of
from floe.spec.identity import DBT, ProcessId

Facets = dict[str, Any]


def encode_event(
    report: Report,
    lake: str,
    job: ProcessId,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
) -> bytes:
    """Encode a report as an OpenLineage event.

    `job` is the process of the Dagster run, `columns` the column lineage of outputs, by dataset.
    """
    process = report.run.process
    event = {
        "eventType": report.kind,
        "eventTime": report.at.isoformat(),
        "producer": PRODUCER,
        "schemaURL": SCHEMA_URL,
        "run": {"runId": report.run.run_id, "facets": _run_facets(report, job)},
        "job": {
            "namespace": process.namespace,
            "name": process.name,
            "facets": _job_facets(report),
        },
        "inputs": [_input(lake, dataset) for dataset in report.inputs],
        "outputs": [_output(lake, dataset, columns or {}) for dataset in report.outputs],
    }
    return msgspec.json.encode(event)


def _run_facets(report: Report, job: ProcessId) -> Facets:
    run = report.run
    own = {
        "businessDate": run.business_date.isoformat(),
        "partition": run.partition,
        "attempt": run.attempt,
        "dagster": {"run": run.dagster_run, "step": run.step},
    }
    facets = {
        "floe": _facet(own, "floe"),
        "trace": _facet(span_of(report).facet(), "floe-trace"),
    }
    if run.step is not None:
        parent = {
            "run": {"runId": run.dagster_run},
            "job": {"namespace": job.namespace, "name": job.name},
        }
        facets["parent"] = _facet(parent, "ParentRunFacet")
    if report.failure is not None:
        error = {
            "message": report.failure.message,
            "programmingLanguage": "python",
            "stackTrace": report.failure.trace,
        }
        facets["errorMessage"] = _facet(error, "ErrorMessageRunFacet")
    return facets


def _job_facets(report: Report) -> Facets:
    integration = "DBT" if report.run.process.namespace.startswith(f"{DBT}/") else "DAGSTER"
    kind = {
        "processingType": "BATCH",
        "integration": integration,
        "jobType": report.run.job_type,
    }
    facets = {"jobType": _facet(kind, "JobTypeJobFacet")}
    if report.sql is not None:
        facets["sql"] = _facet({"query": report.sql}, "SQLJobFacet")
    return facets


def _input(lake: str, read: Input) -> dict[str, Any]:
    dataset = _dataset(lake, read.dataset, read.tag)
    if read.verdicts:
        assertions = {"assertions": [_assertion(verdict) for verdict in read.verdicts]}
        facet = _facet(assertions, "DataQualityAssertionsDatasetFacet")
        dataset["inputFacets"] = {"dataQualityAssertions": facet}
    return dataset


def _assertion(verdict: Verdict) -> dict[str, Any]:
    return {
        "assertion": verdict.name,
        "name": verdict.name,
        "success": verdict.passed,
        "severity": "error" if verdict.strict else "warn",
    }


def _output(lake: str, output: Output, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    dataset = _dataset(lake, output.dataset, output.tag, output.columns)
    if output.dataset in columns:
        lineage = _facet(columns[output.dataset], "ColumnLineageDatasetFacet")
        dataset["facets"]["columnLineage"] = lineage
    counts = {"rowCount": output.rows, "size": output.size}
    known = {name: count for name, count in counts.items() if count is not None}
    if known:
        statistics = _facet(known, "OutputStatisticsOutputDatasetFacet")
        dataset["outputFacets"] = {"outputStatistics": statistics}
    return dataset


def _dataset(lake: str, name: str, tag: str, columns: Sequence[Column] = ()) -> dict[str, Any]:
    facets: Facets = {}
    if tag:
        facets["version"] = _facet({"datasetVersion": tag}, "DatasetVersionDatasetFacet")
    if columns:
        fields = [{"name": column.name, "type": column.type} for column in columns]
        facets["schema"] = _facet({"fields": fields}, "SchemaDatasetFacet")
    return {"namespace": lake, "name": name, "facets": facets}


def _facet(content: Mapping[str, Any], name: str) -> Facets:
    return {"_producer": PRODUCER, "_schemaURL": f"{FACETS}/{name}.json", **content}
