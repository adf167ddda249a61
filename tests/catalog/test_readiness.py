"""What triggers ask of versions and runs, on every store."""

from datetime import date, timedelta

import pytest

from floe.catalog import readiness
from floe.catalog.database import Catalog
from floe.catalog.datasets import create_dataset
from floe.catalog.processes import register_process
from floe.catalog.readiness import (
    Asked,
    dates_after,
    dates_run_after,
    facets_of_runs,
    find_dataset_ids,
    list_failed_changes,
    list_ready_changes,
    page_after,
    tags_on,
    tags_until,
)
from floe.catalog.rejecting import record_rejected, reject_ready
from floe.catalog.runs import FAILED, SUCCESS, finish_run, start_run
from floe.catalog.versions import READY, REJECTED, list_versions, reserve_version
from tests.events.factory import run_id

MONDAY, TUESDAY, WEDNESDAY = date(2026, 8, 31), date(2026, 9, 1), date(2026, 9, 2)


@pytest.fixture
def numbers(catalog: Catalog) -> list[int]:
    """Two datasets with READY versions of Monday and Tuesday, the second also of Wednesday."""
    with catalog.writing() as session:
        made = [create_dataset(session, "lake", f"raw.{name}").dataset_id for name in "ab"]
        for number in made:
            for day in (MONDAY, TUESDAY):
                reserve_version(session, number, day, state=READY)
        reserve_version(session, made[1], WEDNESDAY, state=READY)
    return made


def test_versions_of_a_date_are_asked_for_many_datasets_at_once(
    catalog: Catalog, numbers: list[int]
) -> None:
    with catalog.reading() as session:
        assert find_dataset_ids(session, ["lake/raw.a", "lake/raw.none"]) == {
            "lake/raw.a": numbers[0]
        }
        assert tags_on(session, WEDNESDAY, numbers) == {numbers[1]: "2026-09-02.1"}


def test_the_newest_versions_up_to_a_date_come_newest_first(
    catalog: Catalog, numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "MOST_PARTS", 2)
    asked = [
        Asked(numbers[0], WEDNESDAY),
        Asked(numbers[1], TUESDAY, most=5),
        Asked(numbers[1], WEDNESDAY, since=WEDNESDAY, most=5),
        Asked(numbers[0], MONDAY - timedelta(days=1)),
    ]
    with catalog.reading() as session:
        assert tags_until(session, asked) == {
            asked[0]: ["2026-09-01.1"],
            asked[1]: ["2026-09-01.1", "2026-08-31.1"],
            asked[2]: ["2026-09-02.1"],
        }


def test_dates_after_one_are_those_that_have_versions_or_runs(
    catalog: Catalog, numbers: list[int]
) -> None:
    with catalog.writing() as session:
        process = register_process(session, "floe/test/make")
        run = start_run(
            session,
            run_id("made"),
            process.process_id,
            business_date=TUESDAY,
            facets_json={"floe": {"inputs": {"a": ["2026-09-01.1"]}}},
        )
        finish_run(session, run, SUCCESS)
        failed = start_run(session, run_id("failed"), process.process_id, business_date=TUESDAY)
        finish_run(session, failed, FAILED)
    with catalog.reading() as session:
        assert dates_after(session, MONDAY, numbers) == {
            numbers[0]: {TUESDAY},
            numbers[1]: {TUESDAY, WEDNESDAY},
        }
        assert dates_run_after(session, MONDAY, ["floe/test/make"]) == {"floe/test/make": {TUESDAY}}
        (facets,) = facets_of_runs(session, TUESDAY, ["floe/test/make"])["floe/test/make"]
        assert facets["floe"]["inputs"] == {"a": ["2026-09-01.1"]}


def test_a_page_of_the_log_has_what_became_ready(catalog: Catalog, numbers: list[int]) -> None:
    with catalog.reading() as session:
        assert page_after(session, 0, 3) == (0, 3)
        assert page_after(session, 3, 3) == (3, 5)
        assert page_after(session, 5, 3) == (5, 5)
        found = list_ready_changes(session, 3, 5)
        assert [(one.dataset, one.business_date) for one in found] == [
            ("raw.b", TUESDAY),
            ("raw.b", WEDNESDAY),
        ]
        assert list_failed_changes(session, 0, 5) == []


def test_a_log_that_is_shorter_than_what_was_read_is_read_anew(
    catalog: Catalog, numbers: list[int]
) -> None:
    with catalog.reading() as session:
        assert page_after(session, 1_000, 3) == (0, 3)


def test_a_version_that_is_no_good_was_never_ready(catalog: Catalog, numbers: list[int]) -> None:
    for _ in range(2):
        with catalog.writing() as session:
            record_rejected(session, numbers[0], WEDNESDAY, "2026-09-02.1", reason="not unique")
    with catalog.reading() as session:
        newest = list_versions(session, numbers[0])[0]
        assert (newest.version_tag, newest.state) == ("2026-09-02.1", REJECTED)
        assert list_ready_changes(session, 5, 100) == []


def test_what_is_ready_can_be_rejected_once(catalog: Catalog, numbers: list[int]) -> None:
    for _ in range(2):
        with catalog.writing() as session:
            reject_ready(session, numbers[1], "2026-09-02.1", reason="not unique")
    with catalog.reading() as session:
        assert list_versions(session, numbers[1])[0].state == REJECTED
        assert page_after(session, 5, 100) == (5, 6)
