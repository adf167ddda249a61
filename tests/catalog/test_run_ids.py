"""Run ids are resolved from a prefix."""

import pytest

from floe.catalog.database import Catalog
from floe.catalog.errors import RunAmbiguousError
from floe.catalog.processes import register_process
from floe.catalog.runs import resolve_run_id, short_run_id
from tests.catalog.graph import start_run

FIRST = "11111111-0000-4000-8000-000000000001"
SECOND = "11111112-0000-4000-8000-000000000002"
BATCH = "22222222-0000-4000-8000-000000000003"


@pytest.fixture
def runs(catalog: Catalog) -> Catalog:
    """Two runs of one batch; the batch has no run of its own."""
    with catalog.writing() as session:
        process = register_process(session, "floe/risk/totals").process_id
        for run_uuid in (FIRST, SECOND):
            start_run(session, run_uuid, process, parent_run_uuid=BATCH)
    return catalog


@pytest.mark.parametrize("whole", [FIRST, SECOND, BATCH])
def test_the_short_id_in_a_table_finds_the_run(runs: Catalog, whole: str) -> None:
    with runs.reading() as session:
        assert resolve_run_id(session, short_run_id(whole)) == whole
        assert resolve_run_id(session, whole) == whole


def test_an_ambiguous_prefix_is_rejected_with_the_matching_ids(runs: Catalog) -> None:
    with runs.reading() as session, pytest.raises(RunAmbiguousError, match=f"{FIRST}, {SECOND}"):
        resolve_run_id(session, "1111111")


def test_a_prefix_without_a_match_is_returned_unchanged(runs: Catalog) -> None:
    with runs.reading() as session:
        assert resolve_run_id(session, "abc") == "abc"
        assert resolve_run_id(session, "%") == "%"
