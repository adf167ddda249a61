"""Convert an OpenLineage event to the claims that the catalog records.

Pure: no clock, no database.
"""

import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import DecodeError, Raw

from floe.catalog.recording import (
    AssertionClaim,
    DatasetClaim,
    EventClaim,
    RunClaim,
    Seen,
    StepClaim,
    VersionClaim,
)
from floe.catalog.recording.facets import JobType, fits, read_facet
from floe.catalog.stable_names import OWN
from floe.clock import is_business_date
from floe.events.errors import FIRST_YEAR, LAST_YEAR, Reason
from floe.events.openlineage import DatasetPart, Event, compress, event_timestamp
from floe.events.openlineage_facets import (
    ASSERTIONS,
    NO_FLOE_FACET,
    AirflowRun,
    Assertion,
    Assertions,
    FloeRun,
    NominalTime,
    OutputStatistics,
    Parent,
    Symlinks,
    subset_locations,
)
from floe.spec.identity import FLOE

SEEN = {
    "START": Seen.STARTED,
    "RUNNING": Seen.STARTED,
    "OTHER": Seen.STARTED,
    None: Seen.STARTED,
    "ABORT": Seen.STARTED | Seen.ABORTED,
    "FAIL": Seen.STARTED | Seen.FAILED,
    "COMPLETE": Seen.STARTED | Seen.COMPLETED,
}
# How long a catalog keeps events by default.
RETENTION = timedelta(days=90)
# Facets whose newest value is the current one of the dataset or process.
DATASET_FACETS = ("documentation", "ownership", "tags", "lifecycleStateChange")
PROCESS_FACETS = ("documentation", "ownership", "tags", "jobType", "sql", "sourceCodeLocation")
# Facets with their own tables or columns; all others are stored with the version unchanged.
MAPPED = frozenset({"schema", "columnLineage", "symlinks", "version", ASSERTIONS, *DATASET_FACETS})
# Real tables have only a few: a catalog entry, a path, one or two views.
MAX_SYMLINKS, MAX_SYMLINKS_OF_EVENT = 100, 1_000
MAX_CHECK_NAME, MAX_CHECK_KIND = 200, 50
_FOREIGN_RUNS = uuid.UUID("5f0d5bb4-4c2f-5d0a-9a7e-0c1f6f6f2b31")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DATED = re.compile(r"v?(\d{4})(-?)(\d{2})\2(\d{2})(?!\d)")
_CHECKSUM = re.compile(r"[A-Za-z0-9-]{1,20}:[A-Za-z0-9+/=_-]{1,256}")
_DBT_STEP = re.compile(r"(.+)\.sql\.(\d{1,6})")
_decode = msgspec.json.decode
_no_facets: dict[str, Raw] = {}


def claims_of(
    event: Event,
    body: bytes,
    received_at: datetime,
    *,
    historical: bool,
    retention: timedelta = RETENTION,
) -> EventClaim:
    """Return what an event claims; events older than the retention are historical."""
    at = _utc(event_timestamp(event)) or received_at
    payload, codec = compress(body)
    run_facets = (event.run.facets if event.run else None) or _no_facets
    floe = read_facet(run_facets["floe"], FloeRun) if "floe" in run_facets else NO_FLOE_FACET
    claim = EventClaim(
        day=at.date(),
        hash=hashlib.sha256(body).hexdigest(),
        at=at,
        type=_type(event),
        payload=payload,
        codec=codec,
        historical=historical or floe.historical or received_at - at > retention,
        received_at=received_at,
        business_date=_date(floe.business_date),
        nominal_at=_nominal(run_facets),
    )
    if event.job is not None:
        claim.process_key = f"{event.job.namespace}/{event.job.name}"
        claim.process_facets = _newest_facets(event.job.facets, PROCESS_FACETS)
    if event.run is not None:
        claim.run = _run_claim(event, claim, run_facets, floe)
    if (parent := _parent_of_step(event, run_facets)) is not None:
        return _as_step(claim, *parent)
    claim.datasets = list(_dataset_claims(event))
    if _is_dbt(event, "TEST"):
        # A test writes no dataset: the table that dbt names holds the failing rows, if any.
        claim.datasets = [dataset for dataset in claim.datasets if not dataset.writes]
    return claim


def _is_dbt(event: Event, kind: str) -> bool:
    facets = event.job.facets if event.job else None
    if not facets or "jobType" not in facets:
        return False
    job_type = read_facet(facets["jobType"], JobType)
    return job_type.integration == "DBT" and job_type.job_type == kind


def _parent_of_step(event: Event, facets: Mapping[str, Raw]) -> tuple[str, str, int] | None:
    """Return the process key, run and step order of a dbt statement.

    dbt-ol reports the n-th statement of `model.credit.exposure` as `model.credit.exposure.sql.n`.
    """
    step = _DBT_STEP.fullmatch(event.job.name) if event.job else None
    if step is None or "parent" not in facets or not _is_dbt(event, "SQL"):
        return None
    parent = read_facet(facets["parent"], Parent)
    job, run_id = parent.job, parent.run.run_id
    if job is None or job.name != step[1] or not run_id:
        return None
    return f"{job.namespace}/{step[1]}", run_uuid_of(run_id), int(step[2])


def _as_step(claim: EventClaim, process_key: str, run_uuid: str, order: int) -> EventClaim:
    """Turn the claim of a separate run into a step of the parent run."""
    run = claim.run
    assert run is not None
    claim.step = StepClaim(f"sql.{order}", order, run.seen, run.started_at, run.ended_at)
    claim.process_key, claim.process_facets = process_key, {}
    claim.run = RunClaim(
        run_uuid=run_uuid,
        seen=Seen.STARTED,
        at=run.at,
        started_at=None,
        ended_at=None,
        business_date=run.business_date,
        parent_run_uuid=None,
        facets=None,
    )
    return claim


def excess_reasons(event: Event, claim: EventClaim) -> list[Reason]:
    """List the datasets with too many symlinks, or the event if the total is too high."""
    if not any(dataset.symlinks for dataset in claim.datasets):
        return []
    paths = ["$.dataset"] if event.dataset is not None else []
    paths += [f"$.inputs[{index}]" for index in range(len(event.inputs or ()))]
    paths += [f"$.outputs[{index}]" for index in range(len(event.outputs or ()))]
    counts = [len(dataset.symlinks) for dataset in claim.datasets]
    reasons = [
        Reason(f"{path}.facets.symlinks", _excess(count, MAX_SYMLINKS))
        # The outputs of dbt tests have no claims; they come last, so the rest still matches.
        for path, count in zip(paths, counts, strict=False)
        if count > MAX_SYMLINKS
    ]
    if not reasons and sum(counts) > MAX_SYMLINKS_OF_EVENT:
        reasons.append(Reason("$", _excess(sum(counts), MAX_SYMLINKS_OF_EVENT)))
    return reasons


def reserved_reasons(event: Event, claim: EventClaim) -> list[Reason]:
    """List the reserved job namespaces that an event from outside uses."""
    if claim.process_key is None or not claim.process_key.startswith(f"{FLOE}/"):
        return []
    own = event.job is not None and f"{event.job.namespace}/".startswith(f"{FLOE}/")
    path = "$.job.namespace" if own else "$.run.facets.parent.job.namespace"
    message = (
        f"'{FLOE}' and '{FLOE}/…' are reserved for processes that floe runs; "
        "use a different namespace"
    )
    return [Reason(path, message)]


def _excess(count: int, limit: int) -> str:
    return f"has {count:,} symlinks; at most {limit:,} are allowed"


def run_uuid_of(run_id: str) -> str:
    """Return the run's UUID; map a non-UUID id of an old adapter to a stable uuid5."""
    # Nearly all ids are canonical UUIDs, and matching is faster than parsing.
    if _UUID.fullmatch(run_id):
        return run_id
    try:
        return str(uuid.UUID(run_id))
    except ValueError:
        return str(uuid.uuid5(_FOREIGN_RUNS, run_id))


def _type(event: Event) -> str:
    if event.run is not None:
        return f"run.{(event.event_type or 'OTHER').lower()}"
    return "job" if event.job is not None else "dataset"


def _run_claim(
    event: Event, claim: EventClaim, facets: Mapping[str, Raw], floe: FloeRun
) -> RunClaim:
    run = event.run
    assert run is not None
    seen = SEEN[event.event_type]
    started = _utc(run.start_time) or (claim.at if event.event_type == "START" else None)
    ended = (_utc(run.end_time) or claim.at) if seen > Seen.STARTED else None
    parent = read_facet(facets["parent"], Parent).run.run_id if "parent" in facets else ""
    return RunClaim(
        run_uuid=run_uuid_of(run.run_id),
        seen=seen,
        at=claim.at,
        started_at=started,
        ended_at=ended,
        business_date=claim.business_date
        or (claim.nominal_at.date() if claim.nominal_at else None),
        parent_run_uuid=run_uuid_of(parent) if parent else None,
        facets=_json_of(_valid_run_facets(facets)) if facets else None,
        attempt=_attempt(facets, floe),
    )


def _attempt(facets: Mapping[str, Raw], floe: FloeRun) -> int:
    if "airflow" not in facets:
        return floe.attempt
    # Airflow counts from 0 until the task has started.
    return max(floe.attempt, read_facet(facets["airflow"], AirflowRun).task.try_number)


def _valid_run_facets(facets: Mapping[str, Raw]) -> Mapping[str, Raw]:
    """Leave out an invalid floe facet, because floe bases decisions on it."""
    if "floe" not in facets or fits(facets["floe"], FloeRun):
        return facets
    return {name: raw for name, raw in facets.items() if name != "floe"}


def _dataset_claims(event: Event) -> Iterator[DatasetClaim]:
    if event.dataset is not None:
        yield _dataset_claim(event.dataset)
    # dbt-ol sends the results of its tests with the START event, and again with the end.
    with_checks = event.event_type != "START"
    for part in event.inputs or ():
        yield _dataset_claim(part, reads=True, with_checks=with_checks)
    for part in event.outputs or ():
        yield _dataset_claim(part, writes=True, with_checks=with_checks)


def _dataset_claim(
    part: DatasetPart, *, reads: bool = False, writes: bool = False, with_checks: bool = True
) -> DatasetClaim:
    facets = part.facets or _no_facets
    claim = DatasetClaim(
        namespace=part.namespace,
        name=part.name,
        reads=reads,
        writes=writes,
        version=_version_claim(part, facets, writes=writes),
        schema=_bytes(facets.get("schema")),
        columns=_bytes(facets.get("columnLineage")) if writes else None,
    )
    if "symlinks" in facets:
        claim.symlinks = _symlinks(facets["symlinks"])
    claim.facets = _newest_facets(facets, DATASET_FACETS)
    groups = (facets, part.input_facets, part.output_facets)
    if with_checks and any(group and ASSERTIONS in group for group in groups):
        # The same result may occur in several facets of a dataset.
        checks = {check.name: check for check in _assertions(*groups)}
        claim.assertions = tuple(checks.values())
    return claim


def _version_claim(part: DatasetPart, facets: Mapping[str, Raw], *, writes: bool) -> VersionClaim:
    tag = _version_tag(facets["version"]) if "version" in facets else None
    claim = VersionClaim(tag, _date(tag))
    if not writes:
        return claim
    kept = {key: raw for key, raw in facets.items() if key not in MAPPED}
    if part.output_facets:
        kept.update(part.output_facets)
        if "outputStatistics" in part.output_facets:
            statistics = read_facet(part.output_facets["outputStatistics"], OutputStatistics)
            claim.rows, claim.size = statistics.rows, statistics.size
        if "subset" in part.output_facets:
            claim.locations = subset_locations(_object(part.output_facets["subset"]))
    # Only floe may set its own facet, because it controls which versions are shown or removed.
    kept.pop(OWN, None)
    if claim.rows is None and "rows" in facets:
        claim.rows = _count(_plain(facets["rows"]))
    if "path" in facets:
        path = _inner(facets["path"], "path")
        claim.path = path if isinstance(path, str) and path else None
    if "checksum" in facets:
        claim.checksum = _checksum(_inner(facets["checksum"], "checksum"))
    claim.metadata = _json_of(kept) if kept else None
    return claim


def _checksum(value: Any) -> str | None:
    usable = isinstance(value, str) and _CHECKSUM.fullmatch(value)
    return value if usable else None


def _version_tag(raw: Raw) -> str | None:
    """Return the version tag from OpenLineage's facet, or from bare text."""
    value = _inner(raw, "datasetVersion")
    usable = isinstance(value, str | int) and not isinstance(value, bool)
    return _text(str(value), 300) if usable else None


def _symlinks(raw: Raw) -> tuple[tuple[str, str], ...]:
    symlinks = read_facet(raw, Symlinks).identifiers
    return tuple((symlink.namespace, symlink.name) for symlink in symlinks)


def _assertions(*groups: Mapping[str, Raw] | None) -> Iterator[AssertionClaim]:
    for facets in groups:
        if facets and ASSERTIONS in facets:
            for assertion in read_facet(facets[ASSERTIONS], Assertions).assertions:
                yield _assertion(assertion)


def _assertion(check: Assertion) -> AssertionClaim:
    kind = check.assertion
    name = check.name or (f"{kind}_{check.column}" if check.column else kind)
    return AssertionClaim(
        name=name[:MAX_CHECK_NAME],
        kind=kind[:MAX_CHECK_KIND],
        passed=check.success,
        warns=(check.severity or "").lower().startswith("warn"),
    )


def _newest_facets(facets: Mapping[str, Raw] | None, wanted: tuple[str, ...]) -> dict[str, str]:
    if not facets or facets.keys().isdisjoint(wanted):
        return {}
    texts = {key: bytes(facets[key]).decode() for key in wanted if key in facets}
    # A facet that is not an object must not replace an older one that is.
    return {key: text for key, text in texts.items() if text.startswith("{")}


def _nominal(facets: Mapping[str, Raw]) -> datetime | None:
    raw = facets.get("nominalTime")
    return None if raw is None else _time(read_facet(raw, NominalTime).start)


# --- bare values of minimal adapters: invalid ones are ignored


def _object(raw: Any) -> dict[str, Any]:
    value = _plain(raw) if isinstance(raw, Raw) else raw
    return value if isinstance(value, dict) else {}


def _plain(raw: Raw | None) -> Any:
    if raw is None:
        return None
    try:
        return _decode(raw)
    except (DecodeError, RecursionError):
        return None


def _inner(raw: Raw | None, key: str) -> Any:
    """Return the value of a facet: in its object, or bare as minimal adapters send it."""
    value = _plain(raw)
    return value.get(key) if isinstance(value, dict) else value


def _bytes(raw: Raw | None) -> bytes | None:
    return None if raw is None else bytes(raw)


def _json_of(facets: Mapping[str, Raw]) -> str:
    return "{" + ",".join([_key(key) + bytes(raw).decode() for key, raw in facets.items()]) + "}"


@lru_cache(maxsize=1000)
def _key(name: str) -> str:
    return f"{msgspec.json.encode(name).decode()}:"


def _text(value: Any, limit: int) -> str | None:
    return value[:limit] if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if usable else None


def _utc(timestamp: datetime | None) -> datetime | None:
    if timestamp is None or not FIRST_YEAR <= timestamp.year < LAST_YEAR:
        return None
    if timestamp.tzinfo is None:
        return timestamp.replace(tzinfo=UTC)
    return timestamp.astimezone(UTC)


def _time(value: Any) -> datetime | None:
    try:
        return _utc(msgspec.convert(value, datetime)) if isinstance(value, str) else None
    except msgspec.ValidationError:
        return None


def _date(value: Any) -> date | None:
    """Parse the date that a text starts with: 2026-09-01, v20260901, 2026-09-01T07:30."""
    match = _DATED.match(value) if isinstance(value, str) else None
    if match is None:
        return None
    try:
        day = date(int(match[1]), int(match[3]), int(match[4]))
    except ValueError:
        return None
    return day if is_business_date(day) else None
