"""Checks that others ran: their verdicts on a dataset, beside those of floe's own checks."""

from floe.catalog.checks import FAIL, PASS, REJECT, WARN
from floe.catalog.recording.claims import AssertionClaim, DatasetClaim
from floe.catalog.recording.kept import Kept
from floe.catalog.recording.merges import CHECK_RESULTS, CHECKS
from floe.catalog.recording.parts import tag_of
from floe.catalog.recording.scope import Recording
from floe.catalog.stores.merging import Lookup

CHECK_NUMBERS = Lookup("quality_check_def", ("dataset_id", "name", "qdef_id"), by=("dataset_id",))


def record_assertions(recording: Recording, kept: Kept) -> None:
    """Write the verdicts of events that are new; those of a repeated event are there already."""
    claimed = [
        (recording.dataset_id(dataset.namespace, dataset.name), dataset, assertion, claim)
        for claim in recording.claims
        for dataset in claim.datasets
        for assertion in dataset.assertions
    ]
    found = [one for one in claimed if kept.is_new(one[3])]
    if not found:
        return
    checks = {(number, one.name): one for number, _, one, _ in found}
    now = recording.written_now
    rows = [
        (number, name, one.kind, WARN if one.warns else REJECT, "Y", now)
        for (number, name), one in sorted(checks.items(), key=lambda item: item[0])
    ]
    recording.merge(CHECKS, rows)
    answer = recording.find(CHECK_NUMBERS, {number for number, _ in checks})
    numbers = {(dataset_id, name): qdef_id for dataset_id, name, qdef_id in answer.fetchall()}
    recording.merge(
        CHECK_RESULTS,
        [
            (
                numbers[number, one.name],
                _version(recording, number, dataset, claim.run.run_uuid if claim.run else ""),
                recording.run_id(claim.run.run_uuid) if claim.run else None,
                recording.moment(claim.at),
                _verdict(one),
            )
            for number, dataset, one, claim in found
        ],
    )


def _version(recording: Recording, number: int, dataset: DatasetClaim, run_uuid: str) -> int | None:
    """The version that was looked at: the one that this event made, or says that it read."""
    if dataset.writes:
        return recording.versions.get((number, run_uuid))
    return recording.versions_read.get((number, tag_of(recording, dataset) or ""))


def _verdict(assertion: AssertionClaim) -> str:
    if assertion.passed:
        return PASS
    return WARN if assertion.warns else FAIL
