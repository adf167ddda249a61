"""Events as sent by real clients, built with OpenLineage's Python client."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    column_lineage_dataset,
    dataset_version_dataset,
    documentation_dataset,
    error_message_run,
    job_type_job,
    nominal_time_run,
    output_statistics_output_dataset,
    ownership_dataset,
    schema_dataset,
    symlinks_dataset,
)
from openlineage.client.serde import Serde

from floe import clock

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)
# For a door that treats these events as live, however old they are.
FOREVER = timedelta(days=36_500)
LAKE = "lake"
PRODUCER = "https://example.com/tests"


def at(minutes: float) -> datetime:
    """Return a time in minutes after noon."""
    return NOON + timedelta(minutes=minutes)


def recently(minutes: float) -> datetime:
    """Return a time yesterday, in minutes after noon, within any retention of days."""
    noon = clock.now().replace(hour=12, minute=0, second=0, microsecond=0)
    return noon - timedelta(days=1) + timedelta(minutes=minutes)


def run_id(name: str) -> str:
    """Return the run id of a name; the same name is the same run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def child_of(run: str, job: str = "night") -> dict[str, Any]:
    """Return the parent facet of a run."""
    return {"parent": {"run": {"runId": run_id(run)}, "job": {"namespace": "n", "name": job}}}


def written(
    name: str,
    *,
    columns: Sequence[str] = (),
    rows: int | None = None,
    version: str | None = None,
    from_columns: dict[str, tuple[str, str]] | None = None,
    description: str | None = None,
    owner: str | None = None,
    symlink: tuple[str, str] | None = None,
    namespace: str = LAKE,
) -> OutputDataset:
    """Return an output of a run."""
    facets = _facets(columns, version, description, owner, symlink)
    if from_columns:
        facets["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(
            fields={
                column: column_lineage_dataset.Fields(
                    [column_lineage_dataset.InputField(LAKE, source, field)]
                )
                for column, (source, field) in from_columns.items()
            }
        )
    statistics: dict[str, Any] = {}
    if rows is not None:
        statistics["outputStatistics"] = (
            output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
        )
    return OutputDataset(namespace, name, facets=facets, outputFacets=statistics)


def read(
    name: str, *, columns: Sequence[str] = (), version: str | None = None, namespace: str = LAKE
) -> InputDataset:
    """Return an input of a run."""
    return InputDataset(namespace, name, facets=_facets(columns, version, None, None, None))


def _facets(
    columns: Sequence[str],
    version: str | None,
    description: str | None,
    owner: str | None,
    symlink: tuple[str, str] | None,
) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    if columns:
        fields = [schema_dataset.SchemaDatasetFacetFields(name, "int") for name in columns]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields)
    if version:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(version)
    if description:
        facets["documentation"] = documentation_dataset.DocumentationDatasetFacet(description)
    if owner:
        owners = [ownership_dataset.Owner(name=owner)]
        facets["ownership"] = ownership_dataset.OwnershipDatasetFacet(owners=owners)
    if symlink:
        identifier = symlinks_dataset.Identifier(*symlink, type="TABLE")
        facets["symlinks"] = symlinks_dataset.SymlinksDatasetFacet(identifiers=[identifier])
    return facets


def event(
    state: str,
    moment: datetime,
    run: str = "run",
    job: str = "exposure",
    *,
    inputs: Sequence[InputDataset] = (),
    outputs: Sequence[OutputDataset] = (),
    nominal: datetime | None = None,
    error: str | None = None,
    namespace: str = "AUTOSYS",
    facets: dict[str, Any] | None = None,
) -> bytes:
    """Return a run event as bytes."""
    run_facets: dict[str, Any] = dict(facets or {})
    if nominal:
        run_facets["nominalTime"] = nominal_time_run.NominalTimeRunFacet(nominal.isoformat())
    if error:
        run_facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(error, "PYTHON")
    job_type = job_type_job.JobTypeJobFacet("BATCH", "AUTOSYS", "JOB")
    run_event = RunEvent(
        eventType=RunState[state],
        eventTime=moment.isoformat(),
        run=Run(run_id(run), facets=run_facets),
        job=Job(namespace, job, facets={"jobType": job_type}),
        producer=PRODUCER,
        inputs=list(inputs),
        outputs=list(outputs),
    )
    return Serde.to_json(run_event).encode()
