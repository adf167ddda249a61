"""Checks that others ran: their verdicts on a dataset, beside those of floe's own checks."""

from collections.abc import Mapping
from typing import Any

from floe.catalog.checks import FAIL, PASS, REJECT, WARN
from floe.catalog.recording.claims import DatasetClaim
from floe.catalog.recording.merges import CHECK_RESULTS, CHECKS
from floe.catalog.recording.scope import Recording
from floe.catalog.stores.merging import Answer, Lookup

CHECK_NUMBERS = Lookup("quality_check_def", ("dataset_id", "name", "qdef_id"), by=("dataset_id",))
LONGEST_NAME, LONGEST_KIND = 200, 50


def new_hashes(kept: Answer) -> set[str]:
    """The events that were not there before."""
    return {event_hash for (event_hash,) in kept.fetchall()}


def record_assertions(recording: Recording, kept: Answer) -> None:
    """Write the verdicts of events that are new; those of a repeated event are there already."""
    claimed = [
        (recording.dataset_id(dataset.namespace, dataset.name), dataset, assertion, claim)
        for claim in recording.claims
        for dataset in claim.datasets
        for assertion in dataset.assertions
    ]
    new = new_hashes(kept) if claimed else set()
    found = [one for one in claimed if one[3].hash in new]
    if not found:
        return
    checks = {(number, _name(one)): one for number, _, one, _ in found}
    now = recording.written_now
    rows = [
        (number, name, _kind(one), WARN if _warns(one) else REJECT, "Y", now)
        for (number, name), one in sorted(checks.items(), key=lambda item: item[0])
    ]
    recording.merge(CHECKS, rows)
    answer = recording.find(CHECK_NUMBERS, {number for number, _ in checks})
    numbers = {(dataset_id, name): qdef_id for dataset_id, name, qdef_id in answer.fetchall()}
    recording.merge(
        CHECK_RESULTS,
        [
            (
                numbers[number, _name(one)],
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
    return recording.versions_read.get((number, dataset.version.tag or ""))


def _name(assertion: Mapping[str, Any]) -> str:
    given = assertion.get("name")
    if isinstance(given, str) and given:
        return given[:LONGEST_NAME]
    column = assertion.get("column")
    kind = str(assertion["assertion"])
    return (f"{kind}_{column}" if column else kind)[:LONGEST_NAME]


def _kind(assertion: Mapping[str, Any]) -> str:
    return str(assertion["assertion"])[:LONGEST_KIND]


def _warns(assertion: Mapping[str, Any]) -> bool:
    return str(assertion.get("severity") or "").lower().startswith("warn")


def _verdict(assertion: Mapping[str, Any]) -> str:
    if assertion.get("success") is True:
        return PASS
    return WARN if _warns(assertion) else FAIL
