"""Versions: tags, states, superseding, retracting, and the change log."""

from datetime import date

import pytest

from floe.catalog.changes import list_changes
from floe.catalog.database import Catalog
from floe.catalog.datasets import create_dataset, find_dataset, page_dataset_events
from floe.catalog.errors import VersionNotFoundError, WrongStateError
from floe.catalog.version_queries import get_version, latest_ready, list_versions
from floe.catalog.versions import (
    ABANDONED,
    PUBLISHING,
    READY,
    RETRACTED,
    SUPERSEDED,
    WRITTEN,
    advance_version,
    reserve_version,
    retract_version,
)

MONDAY, TUESDAY = date(2026, 8, 31), date(2026, 9, 1)


@pytest.fixture
def exposure(catalog: Catalog) -> int:
    with catalog.writing() as session:
        return create_dataset(session, "lake", "credit.exposure").dataset_id


def test_each_rerun_of_a_date_gets_the_next_tag(catalog: Catalog, exposure: int) -> None:
    with catalog.writing() as session:
        tags = [reserve_version(session, exposure, TUESDAY).version_tag for _ in range(2)]
        tags.append(reserve_version(session, exposure, MONDAY).version_tag)
    assert tags == ["2026-09-01.1", "2026-09-01.2", "2026-08-31.1"]


def test_partitions_of_one_date_have_separate_sequence_numbers(
    catalog: Catalog, exposure: int
) -> None:
    with catalog.writing() as session:
        emea = reserve_version(session, exposure, TUESDAY, partition_key="2026-09-01|EMEA")
        apac = reserve_version(session, exposure, TUESDAY, partition_key="2026-09-01|APAC")
        assert (emea.version_tag, apac.version_tag) == ("2026-09-01|EMEA.1", "2026-09-01|APAC.1")


def test_a_version_becomes_ready_in_three_steps(catalog: Catalog, exposure: int) -> None:
    with catalog.writing() as session:
        version = reserve_version(session, exposure, TUESDAY, actor="run 1")
        advance_version(session, version, PUBLISHING, row_count=10)
        assert latest_ready(session, exposure) is None
        advance_version(session, version, READY)
    with catalog.reading() as session:
        ready = latest_ready(session, exposure, on=TUESDAY)
        assert ready is not None
        assert (ready.version_tag, ready.row_count) == ("2026-09-01.1", 10)
        assert [change.kind for change in list_changes(session, 0)] == ["VERSION_READY"]
        events = [event.event_type for event in page_dataset_events(session, exposure)]
        assert events[:3] == ["VERSION_READY", "VERSION_PUBLISHING", "VERSION_WRITING"]


def test_a_version_cannot_skip_a_step(catalog: Catalog, exposure: int) -> None:
    with catalog.writing() as session:
        version = reserve_version(session, exposure, TUESDAY)
        with pytest.raises(WrongStateError, match="is WRITING and cannot become READY"):
            advance_version(session, version, READY)


def test_a_rejected_transition_names_the_allowed_states(catalog: Catalog, exposure: int) -> None:
    with catalog.writing() as session:
        version = reserve_version(session, exposure, TUESDAY)
        advance_version(session, version, ABANDONED)
        with pytest.raises(WrongStateError, match="From ABANDONED it can become: VACUUMED"):
            advance_version(session, version, READY)


def test_a_rerun_supersedes_only_the_previous_version_of_its_date(
    catalog: Catalog, exposure: int
) -> None:
    with catalog.writing() as session:
        other_day = reserve_version(session, exposure, MONDAY, state=READY)
        first = reserve_version(session, exposure, TUESDAY, state=READY)
        second = reserve_version(session, exposure, TUESDAY, state=WRITTEN)
        assert first.state == READY
        advance_version(session, second, READY)
        assert [first.state, second.state, other_day.state] == [SUPERSEDED, READY, READY]


def test_retracting_a_version_restores_the_previous_one(catalog: Catalog, exposure: int) -> None:
    with catalog.writing() as session:
        first = reserve_version(session, exposure, TUESDAY, state=READY)
        second = reserve_version(session, exposure, TUESDAY, state=READY)
        restored = retract_version(session, second, reason="wrong rates", actor="ann")
        assert restored is first
        assert (first.state, second.state) == (READY, RETRACTED)
    with catalog.reading() as session:
        assert [change.kind for change in list_changes(session, 0)][-2:] == [
            "VERSION_RETRACTED",
            "VERSION_READY",
        ]


def test_the_latest_version_is_that_of_the_newest_date(catalog: Catalog, exposure: int) -> None:
    with catalog.writing() as session:
        reserve_version(session, exposure, TUESDAY, state=READY)
        reserve_version(session, exposure, MONDAY, state=READY)
        newest, until = (
            latest_ready(session, exposure),
            latest_ready(session, exposure, until=MONDAY),
        )
        assert newest is not None
        assert until is not None
        assert (newest.business_date, until.business_date) == (TUESDAY, MONDAY)


def test_versions_are_listed_newest_first_in_pages(catalog: Catalog, exposure: int) -> None:
    with catalog.writing() as session:
        for _ in range(3):
            reserve_version(session, exposure, TUESDAY)
        newest = list_versions(session, exposure, limit=2)
        older = list_versions(session, exposure, before_id=newest[-1].dataset_version_id)
        assert [version.seq for version in (*newest, *older)] == [3, 2, 1]


def test_an_unknown_tag_is_rejected_with_the_nearest_tag(catalog: Catalog, exposure: int) -> None:
    with catalog.writing() as session:
        reserve_version(session, exposure, TUESDAY)
        dataset = find_dataset(session, "credit.exposure")
        with pytest.raises(VersionNotFoundError, match=r"Did you mean '2026-09-01\.1'\?"):
            get_version(session, dataset, "2026-09-01.7")
