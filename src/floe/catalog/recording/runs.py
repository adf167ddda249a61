"""Runs: each event of a run adds to what is known of it."""

from collections.abc import Iterator

from floe.catalog.recording.claims import EventClaim, RunClaim, Seen
from floe.catalog.recording.merges import RUNS
from floe.catalog.recording.scope import Recording
from floe.catalog.runs import CANCELLED, FAILED, STARTED, SUCCESS
from floe.catalog.stores.merging import Row


def record_runs(recording: Recording) -> None:
    """Write the runs of events; a run with several events here is merged one after the other."""
    for wave in _waves(recording):
        recording.written_runs.append(recording.merge_returning(RUNS, wave))


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
    )


def status_of(seen: int) -> str:
    """The status of a run that has had these kinds of event."""
    if seen & Seen.COMPLETED:
        return SUCCESS
    if seen & Seen.FAILED:
        return FAILED
    return CANCELLED if seen & Seen.ABORTED else STARTED
