"""Versions created from others, and the details of a run, on every store."""

import uuid
from collections.abc import Sequence
from datetime import date

import pytest
from sqlalchemy.orm import Session

from floe.catalog.checks import FAIL, put_check, record_result
from floe.catalog.database import Catalog
from floe.catalog.datasets import create_dataset
from floe.catalog.impact import find_withdrawn_input, list_derived_versions
from floe.catalog.processes import register_process
from floe.catalog.run_details import failing_line, get_run_story, list_reasons
from floe.catalog.runs import FAILED, SUCCESS, finish_run, page_runs, record_inputs
from floe.catalog.tables import DatasetVersion, ProcessRun
from floe.catalog.version_queries import describe_states, newest_until
from floe.catalog.versions import READY, reserve_version, retract_version
from tests.catalog.graph import start_run

DAY = date(2026, 9, 1)


def run(
    session: Session,
    name: str,
    read: Sequence[DatasetVersion] = (),
    status: str = SUCCESS,
    parent: str | None = None,
    reason: str = "",
) -> ProcessRun:
    process = register_process(session, f"floe/shop/{name}")
    started = start_run(
        session,
        str(uuid.uuid4()),
        process.process_id,
        business_date=DAY,
        parent_run_uuid=parent,
        facets_json={"errorMessage": {"message": reason}} if reason else None,
    )
    record_inputs(session, started, read)
    finish_run(session, started, status)
    return started


def create(session: Session, name: str, *read: DatasetVersion) -> DatasetVersion:
    """Create a version of a new dataset from others."""
    producer = run(session, f"make_{name}", read)
    dataset_id = create_dataset(session, "lake", name, owner_team=f"{name} team").dataset_id
    return reserve_version(
        session, dataset_id, DAY, state=READY, produced_by_run_id=producer.run_uuid
    )


def test_derived_versions_are_found_directly_and_indirectly(catalog: Catalog) -> None:
    with catalog.writing() as session:
        feed = create(session, "feed")
        other = create(session, "other")
        middle = create(session, "middle", feed, other)
        end = create(session, "end", middle, feed)
        create(session, "beside", other)
        retract_version(session, middle, reason="wrong", actor="ann")
        derived = list_derived_versions(session, feed.dataset_version_id)
        # The retracted version is not listed, but the one derived from it is, and only once.
        assert [(version.name, version.depth, version.owner_team) for version in derived] == [
            ("end", 1, "end team")
        ]
        assert derived[0].dataset_version_id == end.dataset_version_id
        assert list_derived_versions(session, end.dataset_version_id) == []


def test_the_nearest_retracted_upstream_version_is_found(catalog: Catalog) -> None:
    with catalog.writing() as session:
        feed = create(session, "feed")
        end = create(session, "end", create(session, "middle", feed))
        assert find_withdrawn_input(session, end.dataset_version_id) is None
        retract_version(session, feed, reason="wrong feed", actor="ann")
        withdrawn = find_withdrawn_input(session, end.dataset_version_id)
        assert withdrawn is not None
        assert (withdrawn.name, withdrawn.state) == ("feed", "RETRACTED")
        assert withdrawn.event is not None
        assert (withdrawn.event.actor, withdrawn.event.reason) == ("ann", "wrong feed")


def test_state_events_of_several_versions_are_read_in_one_query(catalog: Catalog) -> None:
    with catalog.writing() as session:
        feed = create(session, "feed")
        before = reserve_version(session, feed.dataset_id, DAY, state=READY)
        retract_version(session, before, reason="wrong", actor="ann")
        states = [(version.dataset_version_id, version.state) for version in (feed, before)]
        events = describe_states(session, states, feed.dataset_id)
        assert {version_id: event.reason for version_id, event in events.items()} == {
            before.dataset_version_id: "wrong"
        }
        newest = newest_until(session, feed.dataset_id, DAY, since=DAY)
        assert newest is before


def test_a_run_that_only_groups_others_is_left_out(catalog: Catalog) -> None:
    with catalog.writing() as session:
        group = run(session, "job", status=FAILED)
        step = run(session, "step", status=FAILED, parent=group.run_uuid, reason="no rows, line 4")
        listed = [row.run_uuid for row in page_runs(session, 10, no_groups=True)]
        assert listed == [step.run_uuid]
        assert len(page_runs(session, 10, no_groups=False)) == 2
        assert len(page_runs(session, 10, no_groups=True, statuses=[FAILED])) == 1
        assert list_reasons(session, [group.run_id, step.run_id]) == {
            step.run_id: "no rows, line 4"
        }


def test_run_details_have_the_parent_the_children_and_the_checks(catalog: Catalog) -> None:
    with catalog.writing() as session:
        group = run(session, "job", status=FAILED)
        feed = create(session, "feed")
        step = run(session, "step", [feed], FAILED, group.run_uuid, "no rows")
        output = create(session, "output")
        output.produced_by_run_id = step.run_uuid
        check = put_check(session, output.dataset_id, "positive", kind="sql")
        record_result(session, check, FAIL, dataset_version_id=output.dataset_version_id)
        feed_check = put_check(session, feed.dataset_id, "complete", kind="sql")
        for run_id in (step.run_id, None):
            record_result(
                session,
                feed_check,
                FAIL,
                dataset_version_id=feed.dataset_version_id,
                run_id=run_id,
            )
        details = get_run_story(session, step.run_uuid)
        assert details.parent is not None
        assert details.parent.run_uuid == group.run_uuid
        assert [outcome.name for outcome in details.checks] == ["positive", "complete"]
        assert [row.full_name for row in details.inputs] == ["lake/feed"]
        parent = get_run_story(session, group.run_uuid)
        assert [child.run_uuid for child in parent.children] == [step.run_uuid]
        assert parent.reason == "floe/shop/step failed: no rows"


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("[PARSE_SYNTAX_ERROR] at or near 'form'. (line 3, pos 7)", 3),
        ("cannot be resolved; line 12 pos 2;", 12),
        ("ERROR: column x does not exist\nLINE 2: select x", 2),
        ("syntax error in pipeline 7", None),
        ("baseline 5 is missing", None),
    ],
)
def test_the_line_is_read_from_the_messages_of_engines(message: str, line: int | None) -> None:
    assert failing_line(message) == line
