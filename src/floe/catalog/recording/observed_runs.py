"""Record runs from events: their steps, inputs and check results."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime

from floe.catalog.checks import FAIL, PASS, REJECT, WARN
from floe.catalog.recording.announced_versions import tag_of
from floe.catalog.recording.claims import AssertionClaim, DatasetClaim, EventClaim, RunClaim, Seen
from floe.catalog.recording.merge_rules import (
    CHECK_RESULTS,
    CHECKS,
    EXTERNAL_VERSIONS,
    INPUTS,
    LOST_RUNS,
    RUNS,
    STEPS,
)
from floe.catalog.recording.transaction import NewEvents, Recording, UnstorableClaimError
from floe.catalog.runs import CANCELLED, FAILED, LOST, STARTED, SUCCESS
from floe.catalog.stores.merging import Answer, Fetched, Lookup, Row
from floe.catalog.versions import EXTERNAL

_ENDS = Seen.COMPLETED | Seen.FAILED | Seen.ABORTED
STATUSES = Lookup("process_run", ("run_uuid", "status"), by=("run_uuid",))
CHILDREN = Lookup("process_run", ("run_id", "run_uuid", "status", "own"), by=("parent_run_uuid",))


class OwnRunError(UnstorableClaimError):
    """An event from outside claims to be about a run that floe reported itself."""

    def __init__(self, run_uuid: str) -> None:
        super().__init__(
            f"run {run_uuid} belongs to floe, and only floe can report it. "
            "Use a different run id for other jobs."
        )


def record_runs(recording: Recording) -> None:
    """Write the runs of events; several events of one run are merged one by one."""
    for wave in _waves(recording):
        recording.written_runs.append(recording.merge_returning(RUNS, wave))


def record_steps(recording: Recording) -> None:
    """Write the steps of runs; several events of one step are merged one by one."""
    waves: list[dict[tuple[str, str], Row]] = []
    for claim in recording.claims:
        if claim.run is None or claim.step is None:
            continue
        step, key = claim.step, (claim.run.run_uuid, claim.step.name)
        wave = next((wave for wave in waves if key not in wave), None)
        if wave is None:
            wave = {}
            waves.append(wave)
        times = (recording.encode_time(step.started_at), recording.encode_time(step.ended_at))
        wave[key] = (*key, step.order, status_of(step.seen), *times)
    for wave in waves:
        recording.merge(STEPS, [wave[key] for key in sorted(wave)])


@dataclass(frozen=True)
class MaybeLost:
    """Pending queries: the children of runs that ended, and the parents of other runs."""

    children: Answer
    parents: Answer


def query_lost(recording: Recording) -> MaybeLost:
    """Query runs that may be lost; a start may arrive after its parent's end."""
    runs = [claim.run for claim in recording.claims if claim.run is not None]
    ended = {run.run_uuid for run in runs if run.seen & _ENDS}
    parents = {run.parent_run_uuid for run in runs if run.parent_run_uuid} - ended
    return MaybeLost(
        recording.find(CHILDREN, ended) if ended else Fetched([]),
        recording.find(STATUSES, parents) if parents else Fetched([]),
    )


def mark_lost(recording: Recording, queries: MaybeLost) -> None:
    """Mark runs as LOST whose parent has ended and that never reported an end."""
    rows = queries.children.fetchall()
    parents = queries.parents.fetchall()
    if ended := {str(run_uuid) for run_uuid, status in parents if status != STARTED}:
        rows = [*rows, *recording.find(CHILDREN, ended).fetchall()]
    while lost := {
        run_id: str(run_uuid)
        for run_id, run_uuid, status, own in rows
        # An outside run that claims to be the parent of floe's own runs cannot end them.
        if status == STARTED and (recording.own or own == "N")
    }:
        values = [(run_id, LOST) for run_id in sorted(lost)]
        recording.merging.assign(recording.connection, LOST_RUNS, values)
        # The children of a lost run are lost too.
        rows = recording.find(CHILDREN, set(lost.values())).fetchall()


def _waves(recording: Recording) -> Iterator[list[Row]]:
    # A statement cannot update a row twice, so the second event of a run goes into the next one.
    waves: list[dict[str, Row]] = []
    for claim in recording.claims:
        if claim.run is None:
            continue
        wave = next((wave for wave in waves if claim.run.run_uuid not in wave), None)
        if wave is None:
            wave = {}
            waves.append(wave)
        wave[claim.run.run_uuid] = _run_row(recording, claim, claim.run)
    for wave in waves:
        # Sorted, so that two writers of the same runs cannot deadlock.
        yield [wave[run_uuid] for run_uuid in sorted(wave)]


def _run_row(recording: Recording, claim: EventClaim, run: RunClaim) -> Row:
    return (
        run.run_uuid,
        recording.process_id(claim),
        recording.encode_date(run.business_date),
        recording.encode_time(run.started_at),
        recording.encode_time(run.ended_at),
        status_of(run.seen),
        run.attempt,
        run.parent_run_uuid,
        "Y" if claim.historical else "N",
        run.facets,
        recording.encode_time(run.at) if run.facets else None,
        "Y" if run.seen & Seen.COMPLETED else "N",
        "Y" if run.seen & (Seen.FAILED | Seen.ABORTED) else "N",
        recording.written_now,
        "Y" if recording.own else "N",
    )


def reject_own_runs(recording: Recording) -> None:
    """Reject a group with events from outside about runs that floe reported itself."""
    if recording.own:
        return
    own = recording.own_runs()
    if own:
        raise OwnRunError(sorted(own)[0])


def status_of(seen: int) -> str:
    """Return the status of a run that has had these kinds of event."""
    if seen & Seen.COMPLETED:
        return SUCCESS
    if seen & Seen.FAILED:
        return FAILED
    return CANCELLED if seen & Seen.ABORTED else STARTED


NO_VERSION = ""
TAGGED_VERSIONS = Lookup(
    "dataset_version",
    ("dataset_id", "version_tag", "dataset_version_id"),
    by=("dataset_id", "version_tag"),
)
Tagged = tuple[int, str]


def record_inputs(recording: Recording) -> None:
    """Write the inputs of runs; an unknown version becomes an EXTERNAL one."""
    read: set[tuple[str, int, str]] = set()
    tagged: dict[Tagged, tuple[date | None, datetime]] = {}
    for claim in recording.claims:
        if claim.run is None:
            continue
        for dataset in claim.datasets:
            if dataset.reads:
                dataset_id = recording.dataset_id(dataset.namespace, dataset.name)
                tag = tag_of(recording, dataset) or NO_VERSION
                read.add((claim.run.run_uuid, dataset_id, tag))
                if tag:
                    day = _date_read(recording, dataset)
                    _keep_earliest(tagged, (dataset_id, tag), day, claim.at)
    version_ids = _version_ids(recording, tagged) if tagged else {}
    recording.versions_read.update(version_ids)
    rows = [
        (run, dataset_id, tag, version_ids.get((dataset_id, tag))) for run, dataset_id, tag in read
    ]
    recording.merge(INPUTS, sorted(rows, key=lambda row: row[:3]))


def _date_read(recording: Recording, dataset: DatasetClaim) -> date | None:
    dated = recording.dated(dataset.namespace, dataset.name)
    return dataset.version.business_date or (dated.business_date if dated else None)


def _keep_earliest(
    tagged: dict[Tagged, tuple[date | None, datetime]], key: Tagged, day: date | None, at: datetime
) -> None:
    if key not in tagged or at < tagged[key][1]:
        tagged[key] = (day, at)


def _version_ids(
    recording: Recording, tagged: dict[Tagged, tuple[date | None, datetime]]
) -> dict[Tagged, int]:
    no_details = (None,) * 6
    rows = [
        (
            *key,
            recording.encode_date(day),
            0,
            EXTERNAL,
            *no_details,
            recording.encode_time(at),
            "N",
            None,
            None,
        )
        for key, (day, at) in sorted(tagged.items())
    ]
    recording.merge(EXTERNAL_VERSIONS, rows)
    return _find_versions(recording, tagged)


def _find_versions(recording: Recording, tagged: Iterable[Tagged]) -> dict[Tagged, int]:
    wanted = set(tagged)
    dataset_ids, tags = {dataset_id for dataset_id, _ in wanted}, {tag for _, tag in wanted}
    rows = recording.find(TAGGED_VERSIONS, dataset_ids, tags).fetchall()
    return {
        (dataset_id, tag): version_id
        for dataset_id, tag, version_id in rows
        if (dataset_id, tag) in wanted
    }


CHECK_IDS = Lookup("quality_check_def", ("dataset_id", "name", "qdef_id"), by=("dataset_id",))


def record_assertions(recording: Recording, new_events: NewEvents) -> None:
    """Write check results of other tools, once per event."""
    claimed = [
        (recording.dataset_id(dataset.namespace, dataset.name), dataset, assertion, claim)
        for claim in recording.claims
        for dataset in claim.datasets
        for assertion in dataset.assertions
    ]
    new = [claimed_check for claimed_check in claimed if new_events.is_new(claimed_check[3])]
    if not new:
        return
    checks = {(dataset_id, check.name): check for dataset_id, _, check, _ in new}
    now = recording.written_now
    rows = [
        (dataset_id, name, check.kind, WARN if check.warns else REJECT, "Y", now)
        for (dataset_id, name), check in sorted(checks.items(), key=lambda item: item[0])
    ]
    recording.merge(CHECKS, rows)
    answer = recording.find(CHECK_IDS, {dataset_id for dataset_id, _ in checks})
    check_ids = {(dataset_id, name): qdef_id for dataset_id, name, qdef_id in answer.fetchall()}
    recording.merge(
        CHECK_RESULTS,
        [
            (
                check_ids[dataset_id, check.name],
                _checked_version(
                    recording, dataset_id, dataset, claim.run.run_uuid if claim.run else ""
                ),
                recording.run_id(claim.run.run_uuid) if claim.run else None,
                recording.encode_time(claim.at),
                _verdict(check),
            )
            for dataset_id, dataset, check, claim in new
        ],
    )


def _checked_version(
    recording: Recording, dataset_id: int, dataset: DatasetClaim, run_uuid: str
) -> int | None:
    """Return the id of the checked version: the one that this event wrote or read."""
    if dataset.writes:
        return recording.versions.get((dataset_id, run_uuid))
    return recording.versions_read.get((dataset_id, tag_of(recording, dataset) or ""))


def _verdict(assertion: AssertionClaim) -> str:
    if assertion.passed:
        return PASS
    return WARN if assertion.warns else FAIL
