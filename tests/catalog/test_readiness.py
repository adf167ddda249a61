"""Queries of the triggers about versions and runs, on every store."""

from datetime import date, timedelta

import pytest

from floe.catalog import readiness
from floe.catalog.database import Catalog
from floe.catalog.datasets import create_dataset
from floe.catalog.processes import register_process
from floe.catalog.readiness import (
    TagQuery,
    dates_after,
    dates_run_after,
    facets_of_runs,
    find_dataset_ids,
    list_failed_changes,
    list_ready_changes,
    page_bounds,
    tags_on,
    tags_until,
)
from floe.catalog.runs import FAILED, SUCCESS, finish_run
from floe.catalog.version_queries import list_versions
from floe.catalog.versions import READY, REJECTED, record_rejected, reject_ready, reserve_version
from tests.catalog.graph import start_run
from tests.events.factory import run_id

MONDAY, TUESDAY, WEDNESDAY = date(2026, 8, 31), date(2026, 9, 1), date(2026, 9, 2)


@pytest.fixture
def dataset_ids(catalog: Catalog) -> list[int]:
    """Two datasets with READY versions for Monday and Tuesday, the second also Wednesday."""
    with catalog.writing() as session:
        ids = [create_dataset(session, "lake", f"raw.{name}").dataset_id for name in "ab"]
        for dataset_id in ids:
            for day in (MONDAY, TUESDAY):
                reserve_version(session, dataset_id, day, state=READY)
        reserve_version(session, ids[1], WEDNESDAY, state=READY)
    return ids


def test_tags_of_a_date_are_read_for_many_datasets_at_once(
    catalog: Catalog, dataset_ids: list[int]
) -> None:
    with catalog.reading() as session:
        assert find_dataset_ids(session, ["lake/raw.a", "lake/raw.none"]) == {
            "lake/raw.a": dataset_ids[0]
        }
        assert tags_on(session, WEDNESDAY, dataset_ids) == {dataset_ids[1]: "2026-09-02.1"}


def test_tags_up_to_a_date_are_returned_newest_first(
    catalog: Catalog, dataset_ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "MAX_PARTS", 2)
    queries = [
        TagQuery(dataset_ids[0], WEDNESDAY),
        TagQuery(dataset_ids[1], TUESDAY, limit=5),
        TagQuery(dataset_ids[1], WEDNESDAY, since=WEDNESDAY, limit=5),
        TagQuery(dataset_ids[0], MONDAY - timedelta(days=1)),
    ]
    with catalog.reading() as session:
        assert tags_until(session, queries) == {
            queries[0]: ["2026-09-01.1"],
            queries[1]: ["2026-09-01.1", "2026-08-31.1"],
            queries[2]: ["2026-09-02.1"],
        }


def test_later_dates_with_versions_and_with_runs_are_returned(
    catalog: Catalog, dataset_ids: list[int]
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
        assert dates_after(session, MONDAY, dataset_ids) == {
            dataset_ids[0]: {TUESDAY},
            dataset_ids[1]: {TUESDAY, WEDNESDAY},
        }
        assert dates_run_after(session, MONDAY, ["floe/test/make"]) == {"floe/test/make": {TUESDAY}}
        (facets,) = facets_of_runs(session, TUESDAY, ["floe/test/make"])["floe/test/make"]
        assert facets["floe"]["inputs"] == {"a": ["2026-09-01.1"]}


def test_a_page_of_the_log_has_the_versions_that_became_ready(
    catalog: Catalog, dataset_ids: list[int]
) -> None:
    with catalog.reading() as session:
        assert page_bounds(session, 0, 3) == (0, 3)
        assert page_bounds(session, 3, 3) == (3, 5)
        assert page_bounds(session, 5, 3) == (5, 5)
        changes = list_ready_changes(session, 3, 5)
        assert [(change.dataset, change.business_date) for change in changes] == [
            ("raw.b", TUESDAY),
            ("raw.b", WEDNESDAY),
        ]
        assert list_failed_changes(session, 0, 5) == []


def test_a_log_that_ends_before_the_cursor_is_read_from_the_start(
    catalog: Catalog, dataset_ids: list[int]
) -> None:
    with catalog.reading() as session:
        assert page_bounds(session, 1_000, 3) == (0, 3)


def test_a_rejected_foreign_version_is_recorded_once_and_never_ready(
    catalog: Catalog, dataset_ids: list[int]
) -> None:
    for _ in range(2):
        with catalog.writing() as session:
            record_rejected(session, dataset_ids[0], WEDNESDAY, "2026-09-02.1", reason="not unique")
    with catalog.reading() as session:
        newest = list_versions(session, dataset_ids[0])[0]
        assert (newest.version_tag, newest.state) == ("2026-09-02.1", REJECTED)
        assert list_ready_changes(session, 5, 100) == []


def test_a_ready_version_is_rejected_once(catalog: Catalog, dataset_ids: list[int]) -> None:
    for _ in range(2):
        with catalog.writing() as session:
            reject_ready(session, dataset_ids[1], "2026-09-02.1", reason="not unique")
    with catalog.reading() as session:
        assert list_versions(session, dataset_ids[1])[0].state == REJECTED
        assert page_bounds(session, 5, 100) == (5, 6)
