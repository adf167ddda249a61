"""Build OpenLineage events for the two reports of a legacy job.

The server and every client build their messages here. Pure, apart from the current time and new
run ids, and callers may pass both.
"""

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from operator import index
from typing import Any, TypedDict

from floe import clock
from floe.client.errors import BadDetailError, UnknownStatusError
from floe.client.names import LAKE, LONGEST_NAME, Name, parse_dataset, parse_process

Message = dict[str, Any]
Day = date | str
Columns = Mapping[str, str] | Sequence[Mapping[str, str]]

DATASET_STATUSES = {"READY": "COMPLETE", "FAILED": "FAIL"}
PROCESS_STATUSES = {
    "STARTED": "START",
    "RUNNING": "RUNNING",
    "SUCCESS": "COMPLETE",
    "FAILED": "FAIL",
    "CANCELLED": "ABORT",
}
ENDED = frozenset({"SUCCESS", "FAILED", "CANCELLED"})

PRODUCER = "urn:floe:client"
SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
FACETS = "https://openlineage.io/spec/facets"
# Namespace of the placeholder process that is used if a report names no job.
ANNOUNCER = "register_dataset"
LONGEST_VERSION, LONGEST_PATH, LONGEST_ERROR = 300, 1000, 20_000

_CHECKSUM = re.compile(r"[A-Za-z0-9-]{1,20}:[A-Za-z0-9+/=_-]{1,256}\Z")
_ANNOUNCEMENTS = uuid.UUID("c2a4a0a6-7c0e-5d63-8f3c-6b0f6f0f3a52")
_FOREIGN_RUNS = uuid.UUID("5f0d5bb4-4c2f-5d0a-9a7e-0c1f6f6f2b31")
"""Namespaces of run ids. They must never change: the same name gets the same id."""


class DatasetDetails(TypedDict, total=False):
    """A dataset that a process reads or writes, with more than its name."""

    name: str
    namespace: str | None
    version: str | None
    rows: int | None
    size: int | None
    path: str | None
    checksum: str | None
    schema: Columns | None


Dataset = str | DatasetDetails


def dataset_message(
    dataset_name: str,
    version: str | None = None,
    status: str = "READY",
    *,
    namespace: str | None = None,
    lake: str = LAKE,
    business_date: Day | None = None,
    rows: int | None = None,
    size: int | None = None,
    path: str | None = None,
    checksum: str | None = None,
    schema: Columns | None = None,
    inputs: Iterable[Dataset] = (),
    error: str | None = None,
    job: str | None = None,
    run_id: str | None = None,
    historical: bool = False,
    occurred_at: datetime | str | None = None,
) -> Message:
    """Build the event that a version of a dataset is READY or FAILED.

    The run id is derived from the dataset and version, so registering a version again, with any
    status, updates the same run. Without a version each call creates a new run and a new version,
    which the catalog numbers by business date.
    """
    event_type = _event_type(status, DATASET_STATUSES)
    details: DatasetDetails = {
        "name": dataset_name,
        "namespace": namespace,
        "version": version,
        "rows": rows,
        "size": size,
        "path": path,
        "checksum": checksum,
        "schema": schema,
    }
    output = _dataset(details, lake, writes=True)
    full_name = Name(output["namespace"], output["name"])
    announcer = Name(ANNOUNCER, full_name.full[-LONGEST_NAME:])
    return _event(
        event_type,
        parse_process(job) if job else announcer,
        _run_id(run_id) if run_id else _announcement_run_id(full_name, version),
        occurred_at,
        run_facets=_run_facets(business_date, error, None, historical=historical),
        inputs=[_dataset(dataset, lake) for dataset in inputs],
        outputs=[output],
    )


def process_message(
    process_name: str,
    status: str,
    *,
    namespace: str | None = None,
    lake: str = LAKE,
    run_id: str | None = None,
    business_date: Day | None = None,
    inputs: Iterable[Dataset] = (),
    outputs: Iterable[Dataset] = (),
    error: str | None = None,
    stack_trace: str | None = None,
    technology: str | None = None,
    historical: bool = False,
    occurred_at: datetime | str | None = None,
) -> Message:
    """Build the event that a run is STARTED, RUNNING, SUCCESS, FAILED or CANCELLED.

    Messages of one run share a run id; without one, the message starts a new run. An output
    becomes a version of its dataset when the run ends with SUCCESS.
    """
    event_type = _event_type(status, PROCESS_STATUSES)
    job = parse_process(process_name, namespace)
    return _event(
        event_type,
        job,
        _run_id(run_id) if run_id else str(uuid.uuid4()),
        occurred_at,
        job_facets=_job_facets(technology or _technology(job)),
        run_facets=_run_facets(business_date, error, stack_trace, historical=historical),
        inputs=[_dataset(dataset, lake) for dataset in inputs],
        outputs=[_dataset(dataset, lake, writes=True) for dataset in outputs],
    )


def parse_status(status: str, allowed: Iterable[str]) -> str:
    """Return a status in upper case, or raise if it is not allowed."""
    name = status.strip().upper()
    if name not in (names := tuple(allowed)):
        raise UnknownStatusError(status, names)
    return name


def run_id_of(message: Message) -> str:
    """Return the id of the run that a message is about."""
    return str(message["run"]["runId"])


def _event_type(status: str, types: Mapping[str, str]) -> str:
    return types[parse_status(status, types)]


def _run_id(text: str) -> str:
    """Return a UUID unchanged, and map any other id to a stable uuid5."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return str(uuid.uuid5(_FOREIGN_RUNS, text))


def _announcement_run_id(dataset: Name, version: str | None) -> str:
    if version is None:
        return str(uuid.uuid4())
    parts = (dataset.namespace, dataset.name, version)
    return str(uuid.uuid5(_ANNOUNCEMENTS, "\x1f".join(parts)))


def _technology(job: Name) -> str | None:
    return "AUTOSYS" if job.namespace.upper() == "AUTOSYS" else None


def _event(
    event_type: str,
    job: Name,
    run_id: str,
    occurred_at: datetime | str | None,
    *,
    run_facets: Message,
    inputs: list[Message],
    outputs: list[Message],
    job_facets: Message | None = None,
) -> Message:
    return {
        "eventType": event_type,
        "eventTime": _event_time(occurred_at),
        "run": {"runId": run_id, "facets": run_facets},
        "job": {"namespace": job.namespace, "name": job.name, "facets": job_facets or {}},
        "inputs": inputs,
        "outputs": outputs,
        "producer": PRODUCER,
        "schemaURL": f"{SPEC}/RunEvent",
    }


def _dataset(given: Dataset, lake: str, *, writes: bool = False) -> Message:
    details = _split_version(given) if isinstance(given, str) else given
    name = parse_dataset(details.get("name", ""), details.get("namespace"), lake)
    part: Message = {
        "namespace": name.namespace,
        "name": name.name,
        "facets": _dataset_facets(details),
    }
    statistics = _statistics(details) if writes else {}
    if statistics:
        part["outputFacets"] = {
            "outputStatistics": _facet("1-0-2", "OutputStatisticsOutputDatasetFacet", statistics)
        }
    return part


def _split_version(text: str) -> DatasetDetails:
    """Split `credit.positions@2026-09-01.1` into name and version."""
    name, at, version = text.rpartition("@")
    return {"name": name, "version": version} if at else {"name": text}


def _dataset_facets(details: DatasetDetails) -> Message:
    facets = {}
    if version := _text("version", details.get("version"), LONGEST_VERSION):
        body = {"datasetVersion": version}
        facets["version"] = _facet("1-0-1", "DatasetVersionDatasetFacet", body)
    if schema := details.get("schema"):
        fields = {"fields": _fields(schema)}
        facets["schema"] = _facet("1-2-0", "SchemaDatasetFacet", fields)
    if path := _text("path", details.get("path"), LONGEST_PATH):
        facets["path"] = _own_facet("DatasetFacet", {"path": path})
    if checksum := _checksum(details.get("checksum")):
        facets["checksum"] = _own_facet("DatasetFacet", {"checksum": checksum})
    return facets


def _checksum(value: str | None) -> str | None:
    if value is not None and not _CHECKSUM.match(str(value)):
        expected = "an algorithm and a value, such as sha256:9f86d081"
        raise BadDetailError("checksum", str(value)[:50], expected)
    return value


def _statistics(details: DatasetDetails) -> Message:
    counts = {
        "rowCount": _count("rows", details.get("rows")),
        "size": _count("size", details.get("size")),
    }
    return {name: value for name, value in counts.items() if value is not None}


def _fields(schema: Columns) -> list[Message]:
    if isinstance(schema, Mapping):
        return [{"name": str(name), "type": str(kind)} for name, kind in schema.items()]
    if not all(isinstance(field, Mapping) and "name" in field for field in schema):
        raise BadDetailError("schema", schema, "a mapping of column to type, or a list of fields")
    return [dict(field) for field in schema]


def _run_facets(
    business_date: Day | None, error: str | None, stack_trace: str | None, *, historical: bool
) -> Message:
    facets = {}
    own: Message = {}
    if business_date is not None:
        own["businessDate"] = _day(business_date)
    if historical:
        own["historical"] = True
    if own:
        facets["floe"] = _own_facet("RunFacet", own)
    if error:
        body = {"message": error[:LONGEST_ERROR], "programmingLanguage": "unknown"}
        if stack_trace:
            body |= {"programmingLanguage": "python", "stackTrace": stack_trace[-LONGEST_ERROR:]}
        facets["errorMessage"] = _facet("1-0-1", "ErrorMessageRunFacet", body)
    return facets


def _job_facets(technology: str | None) -> Message:
    if not technology:
        return {}
    body = {"processingType": "BATCH", "integration": technology, "jobType": "JOB"}
    return {"jobType": _facet("2-0-4", "JobTypeJobFacet", body)}


def _facet(version: str, name: str, body: Message) -> Message:
    """Build a facet that OpenLineage specifies."""
    url = f"{FACETS}/{version}/{name}.json#/$defs/{name}"
    return {"_producer": PRODUCER, "_schemaURL": url, **body}


def _own_facet(base: str, body: Message) -> Message:
    """Build a facet that only floe defines."""
    return {"_producer": PRODUCER, "_schemaURL": f"{SPEC}/{base}", **body}


def _event_time(value: datetime | str | None) -> str:
    expected = "a time with a time zone, such as 2026-09-01T06:30:00Z"
    if value is None:
        timestamp = clock.now()
    elif isinstance(value, datetime):
        timestamp = value
    else:
        try:
            timestamp = datetime.fromisoformat(value)
        except ValueError as error:
            raise BadDetailError("occurred_at", value, expected) from error
    if timestamp.tzinfo is None:
        raise BadDetailError("occurred_at", str(value), expected)
    try:
        utc = timestamp.astimezone(UTC)
    except OverflowError as error:
        raise BadDetailError("occurred_at", str(value), expected) from error
    return utc.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _day(value: Day) -> str:
    expected = f"a date such as 2026-09-01, {clock.DATE_RANGE}"
    if isinstance(value, datetime):
        value = value.date()
    if not isinstance(value, date):
        try:
            value = date.fromisoformat(value)
        except ValueError as error:
            raise BadDetailError("business_date", value, expected) from error
    if not clock.is_business_date(value):
        raise BadDetailError("business_date", value.isoformat(), expected)
    return value.isoformat()


def _count(detail: str, value: int | None) -> int | None:
    if value is None:
        return None
    try:
        count = index(value)
    except TypeError:
        count = -1
    if not 0 <= count < 2**63:
        raise BadDetailError(detail, value, "a whole number, 0 or greater")
    return count


def _text(detail: str, value: str | None, longest: int) -> str | None:
    if value is None:
        return None
    text = str(value)
    if not 0 < len(text) <= longest:
        raise BadDetailError(detail, text[:50], f"1 to {longest} characters long")
    return text
