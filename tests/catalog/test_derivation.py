"""Which versions stand on which, and all about one run: the same on every store."""

import uuid
from collections.abc import Sequence
from datetime import date

import pytest
from sqlalchemy.orm import Session

from floe.catalog.checks import FAIL, put_check, record_result
from floe.catalog.database import Catalog
from floe.catalog.datasets import create_dataset
from floe.catalog.derivation import find_taken_back, list_built_on
from floe.catalog.processes import register_process
from floe.catalog.retention import describe_states
from floe.catalog.run_details import failing_line, get_run_details, list_reasons
from floe.catalog.runs import FAILED, SUCCESS, finish_run, page_runs, record_inputs, start_run
from floe.catalog.tables import DatasetVersion, ProcessRun
from floe.catalog.versions import READY, newest_until, reserve_version, retract_version

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
    begun = start_run(
        session,
        str(uuid.uuid4()),
        process.process_id,
        business_date=DAY,
        parent_run_uuid=parent,
        facets_json={"errorMessage": {"message": reason}} if reason else None,
    )
    record_inputs(session, begun, read)
    finish_run(session, begun, status)
    return begun


def make(session: Session, name: str, *read: DatasetVersion) -> DatasetVersion:
    """Make a version of a new dataset from others."""
    maker = run(session, f"make_{name}", read)
    number = create_dataset(session, "lake", name, owner_team=f"{name} team").dataset_id
    return reserve_version(session, number, DAY, state=READY, produced_by_run_id=maker.run_uuid)


def test_what_was_built_on_a_version_is_found_through_others(catalog: Catalog) -> None:
    with catalog.writing() as session:
        feed = make(session, "feed")
        other = make(session, "other")
        middle = make(session, "middle", feed, other)
        end = make(session, "end", middle, feed)
        make(session, "beside", other)
        retract_version(session, middle, reason="wrong", actor="ann")
        built = list_built_on(session, feed.dataset_version_id)
        # What was taken back is not listed, and what stands on it is; nothing comes twice.
        assert [(one.name, one.depth, one.owner_team) for one in built] == [("end", 1, "end team")]
        assert built[0].dataset_version_id == end.dataset_version_id
        assert list_built_on(session, end.dataset_version_id) == []


def test_the_nearest_version_upstream_that_was_taken_back_is_found(catalog: Catalog) -> None:
    with catalog.writing() as session:
        feed = make(session, "feed")
        end = make(session, "end", make(session, "middle", feed))
        assert find_taken_back(session, end.dataset_version_id) is None
        retract_version(session, feed, reason="wrong feed", actor="ann")
        taken = find_taken_back(session, end.dataset_version_id)
        assert taken is not None
        assert (taken.name, taken.state) == ("feed", "RETRACTED")
        assert taken.event is not None
        assert (taken.event.actor, taken.event.reason) == ("ann", "wrong feed")


def test_states_are_explained_in_one_question(catalog: Catalog) -> None:
    with catalog.writing() as session:
        feed = make(session, "feed")
        before = reserve_version(session, feed.dataset_id, DAY, state=READY)
        retract_version(session, before, reason="wrong", actor="ann")
        named = [(one.dataset_version_id, one.state) for one in (feed, before)]
        found = describe_states(session, named, feed.dataset_id)
        assert {number: event.reason for number, event in found.items()} == {
            before.dataset_version_id: "wrong"
        }
        newest = newest_until(session, feed.dataset_id, DAY, since=DAY)
        assert newest is before


def test_a_run_that_only_groups_others_is_left_out(catalog: Catalog) -> None:
    with catalog.writing() as session:
        group = run(session, "job", status=FAILED)
        step = run(session, "step", status=FAILED, parent=group.run_uuid, reason="no rows, line 4")
        shown = [one.run_uuid for one in page_runs(session, 10, no_groups=True)]
        assert shown == [step.run_uuid]
        assert len(page_runs(session, 10, no_groups=False)) == 2
        assert len(page_runs(session, 10, no_groups=True, statuses=[FAILED])) == 1
        assert list_reasons(session, [group.run_id, step.run_id]) == {
            step.run_id: "no rows, line 4"
        }


def test_a_run_is_told_with_its_family_and_checks(catalog: Catalog) -> None:
    with catalog.writing() as session:
        group = run(session, "job", status=FAILED)
        feed = make(session, "feed")
        step = run(session, "step", [feed], FAILED, group.run_uuid, "no rows")
        made = make(session, "made")
        made.produced_by_run_id = step.run_uuid
        check = put_check(session, made.dataset_id, "positive", kind="sql")
        record_result(session, check, FAIL, dataset_version_id=made.dataset_version_id)
        of_feed = put_check(session, feed.dataset_id, "complete", kind="sql")
        for number in (step.run_id, None):
            record_result(
                session,
                of_feed,
                FAIL,
                dataset_version_id=feed.dataset_version_id,
                run_id=number,
            )
        details = get_run_details(session, step.run_uuid)
        assert details.parent is not None
        assert details.parent.run_uuid == group.run_uuid
        assert [one.name for one in details.checks] == ["positive", "complete"]
        assert [one.full_name for one in details.inputs] == ["lake/feed"]
        above = get_run_details(session, group.run_uuid)
        assert [one.run_uuid for one in above.children] == [step.run_uuid]
        assert above.reason == "floe/shop/step failed: no rows"


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
def test_the_line_is_read_from_what_engines_say(message: str, line: int | None) -> None:
    assert failing_line(message) == line
