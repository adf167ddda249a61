"""Ids of runs by their first letters."""

import pytest

from floe.catalog.database import Catalog
from floe.catalog.errors import RunAmbiguousError
from floe.catalog.processes import register_process
from floe.catalog.run_ids import short_run_id, whole_run_id
from floe.catalog.runs import start_run

FIRST = "11111111-0000-4000-8000-000000000001"
SECOND = "11111112-0000-4000-8000-000000000002"
BATCH = "22222222-0000-4000-8000-000000000003"


@pytest.fixture
def runs(catalog: Catalog) -> Catalog:
    """Two runs of one batch, which is no run itself."""
    with catalog.writing() as session:
        process = register_process(session, "floe/risk/totals").process_id
        for one in (FIRST, SECOND):
            start_run(session, one, process, parent_run_uuid=BATCH)
    return catalog


@pytest.mark.parametrize("whole", [FIRST, SECOND, BATCH])
def test_what_a_table_shows_of_an_id_is_enough(runs: Catalog, whole: str) -> None:
    with runs.reading() as session:
        assert whole_run_id(session, short_run_id(whole)) == whole
        assert whole_run_id(session, whole) == whole


def test_letters_that_several_begin_with_are_refused_with_those(runs: Catalog) -> None:
    with runs.reading() as session, pytest.raises(RunAmbiguousError, match=f"{FIRST}, {SECOND}"):
        whole_run_id(session, "1111111")


def test_what_nothing_begins_with_is_left_to_whoever_looks_for_it(runs: Catalog) -> None:
    with runs.reading() as session:
        assert whole_run_id(session, "abc") == "abc"
        assert whole_run_id(session, "%") == "%"
