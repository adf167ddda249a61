"""Runs: each event of a run adds to what is known of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from floe.catalog.recording.claims import EventClaim, RunClaim, Seen
from floe.catalog.recording.merges import LOST_RUNS, RUNS, STEPS
from floe.catalog.recording.scope import Recording, UnstorableClaimError
from floe.catalog.runs import CANCELLED, FAILED, LOST, STARTED, SUCCESS
from floe.catalog.stores.merging import Answer, Fetched, Lookup, Row

_ENDS = Seen.COMPLETED | Seen.FAILED | Seen.ABORTED
STATUSES = Lookup("process_run", ("run_uuid", "status"), by=("run_uuid",))
CHILDREN = Lookup("process_run", ("run_id", "run_uuid", "status", "own"), by=("parent_run_uuid",))


class OwnRunError(UnstorableClaimError):
    """An event from outside is about a run that floe reported itself."""

    def __init__(self, run_uuid: str) -> None:
        super().__init__(
            f"run {run_uuid} is one of floe's own, and only floe itself reports it. "
            "Send events about other work with a run id of their own."
        )


def record_runs(recording: Recording) -> None:
    """Write the runs of events; a run with several events here is merged one after the other."""
    for wave in _waves(recording):
        recording.written_runs.append(recording.merge_returning(RUNS, wave))


def record_steps(recording: Recording) -> None:
    """Write the steps of runs; a step with several events here is merged one after the other."""
    waves: list[dict[tuple[str, str], Row]] = []
    for claim in recording.claims:
        if claim.run is None or claim.step is None:
            continue
        step, key = claim.step, (claim.run.run_uuid, claim.step.name)
        wave = next((one for one in waves if key not in one), None)
        if wave is None:
            wave = {}
            waves.append(wave)
        moments = (recording.moment(step.started_at), recording.moment(step.ended_at))
        wave[key] = (*key, step.order, status_of(step.seen), *moments)
    for wave in waves:
        recording.merge(STEPS, [wave[key] for key in sorted(wave)])


@dataclass(frozen=True)
class MaybeLost:
    """Questions that are out: on the children of runs that ended, and on parents of others."""

    children: Answer
    parents: Answer


def ask_lost(recording: Recording) -> MaybeLost:
    """Ask for runs that may be lost, from both sides: a start may come after its parent's end."""
    runs = [claim.run for claim in recording.claims if claim.run is not None]
    ended = {run.run_uuid for run in runs if run.seen & _ENDS}
    parents = {run.parent_run_uuid for run in runs if run.parent_run_uuid} - ended
    return MaybeLost(
        recording.find(CHILDREN, ended) if ended else Fetched([]),
        recording.find(STATUSES, parents) if parents else Fetched([]),
    )


def mark_lost(recording: Recording, asked: MaybeLost) -> None:
    """Mark runs as LOST whose parent has ended and that never reported an end."""
    rows = asked.children.fetchall()
    parents = asked.parents.fetchall()
    if ended := {str(run_uuid) for run_uuid, status in parents if status != STARTED}:
        rows = [*rows, *recording.find(CHILDREN, ended).fetchall()]
    while lost := {
        number: str(run_uuid)
        for number, run_uuid, status, own in rows
        # Whoever claims to be the parent of floe's own runs from outside does not end them.
        if status == STARTED and (recording.own or own == "N")
    }:
        values = [(number, LOST) for number in sorted(lost)]
        recording.merging.assign(recording.connection, LOST_RUNS, values)
        # A lost run has children of its own, which nobody else will end.
        rows = recording.find(CHILDREN, set(lost.values())).fetchall()


def _waves(recording: Recording) -> Iterator[list[Row]]:
    # One statement may not touch a row twice, so the second event of a run waits for the next.
    waves: list[dict[str, Row]] = []
    for claim in recording.claims:
        if claim.run is None:
            continue
        wave = next((one for one in waves if claim.run.run_uuid not in one), None)
        if wave is None:
            wave = {}
            waves.append(wave)
        wave[claim.run.run_uuid] = _row(recording, claim, claim.run)
    for wave in waves:
        # Sorted, so that two writers who share runs never wait for each other in a circle.
        yield [wave[run_uuid] for run_uuid in sorted(wave)]


def _row(recording: Recording, claim: EventClaim, run: RunClaim) -> Row:
    return (
        run.run_uuid,
        recording.process_id(claim),
        recording.day(run.business_date),
        recording.moment(run.started_at),
        recording.moment(run.ended_at),
        status_of(run.seen),
        1,
        run.parent_run_uuid,
        "Y" if claim.historical else "N",
        run.facets,
        recording.moment(run.at) if run.facets else None,
        "Y" if run.seen & Seen.COMPLETED else "N",
        "Y" if run.seen & (Seen.FAILED | Seen.ABORTED) else "N",
        recording.written_now,
        "Y" if recording.own else "N",
    )


def refuse_own_runs(recording: Recording) -> None:
    """Refuse a group that has events from outside about runs that floe reported itself."""
    if recording.own:
        return
    own = recording.own_runs()
    if own:
        raise OwnRunError(sorted(own)[0])


def status_of(seen: int) -> str:
    """The status of a run that has had these kinds of event."""
    if seen & Seen.COMPLETED:
        return SUCCESS
    if seen & Seen.FAILED:
        return FAILED
    return CANCELLED if seen & Seen.ABORTED else STARTED
