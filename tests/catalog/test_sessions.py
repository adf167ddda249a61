"""Sessions for a server, and the questions that are asked through them."""

from contextlib import ExitStack

import pytest
from ibm_db_sa.ibm_db import DB2Dialect_ibm_db
from sqlalchemy import String, bindparam, select, text

from floe.catalog.database import Catalog
from floe.catalog.datasets import (
    _NEIGHBOURS,
    _TAGS,
    _VIEW,
    _dataset_page,
    describe_dataset,
    page_datasets,
)
from floe.catalog.errors import DatasetNotFoundError
from floe.catalog.processes import _process_page
from floe.catalog.questions import Question
from floe.catalog.runs import _INPUTS, _OUTPUTS, _RUN_VIEW, _STEPS, _run_page
from floe.catalog.sessions import MOST_IDLE, TRUSTED_SECONDS, CatalogAwayError, Sessions
from floe.catalog.stores.db2 import adapt
from floe.catalog.tables import Dataset
from floe.catalog.versions import _version_page
from tests.catalog.graph import NOON, dataset


class Clock:
    """A clock that goes when it is told to."""

    at = 0.0

    def __call__(self) -> float:
        return self.at


def test_a_connection_stays_at_hand_while_it_is_trusted(catalog: Catalog) -> None:
    clock = Clock()
    sessions = Sessions(catalog, clock)

    def connection() -> int:
        with sessions.reading() as session:
            return id(session.connection().connection.dbapi_connection)

    first = connection()
    assert connection() == first
    assert len(sessions._idle) == 1
    clock.at += TRUSTED_SECONDS * 2
    connection()
    assert len(sessions._idle) == 1
    sessions.close()
    assert not sessions._idle


def test_a_rush_of_readers_leaves_the_pool_to_others(catalog: Catalog) -> None:
    sessions = Sessions(catalog)
    with ExitStack() as stack:
        for _ in range(MOST_IDLE + 3):
            stack.enter_context(sessions.reading()).connection()
    assert len(sessions._idle) == MOST_IDLE
    sessions.close()


def test_what_a_reading_session_changes_is_thrown_away(catalog: Catalog) -> None:
    sessions = Sessions(catalog)
    with sessions.reading() as session:
        session.add(Dataset(namespace="a", name="b", full_name="a/b", status="ACTIVE"))
    with sessions.reading() as session:
        assert session.scalars(select(Dataset)).all() == []
    sessions.close()


def test_a_reader_sees_what_others_have_committed_since(catalog: Catalog) -> None:
    sessions = Sessions(catalog)
    with sessions.reading() as session, pytest.raises(DatasetNotFoundError):
        describe_dataset(session, 1)
    with catalog.writing() as session:
        number = dataset(session, "credit.exposure")
    with sessions.reading() as session:
        assert describe_dataset(session, number).name == "credit.exposure"
    sessions.close()


def test_a_mistake_in_a_session_closes_its_connection(catalog: Catalog) -> None:
    sessions = Sessions(catalog)
    with pytest.raises(ZeroDivisionError), sessions.reading():
        raise ZeroDivisionError
    assert not sessions._idle


@pytest.mark.postgresql
def test_a_connection_that_was_cut_is_an_outage_and_the_next_one_works(
    catalog: Catalog,
) -> None:
    if catalog.store.name != "postgresql":
        pytest.skip("SQLite has no connection to cut")
    sessions = Sessions(catalog)
    with sessions.reading() as session:
        session.execute(text("SELECT 1"))
    with catalog.writing() as session:
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        session.execute(
            text(f"{cut} WHERE datname = current_database() AND pid <> pg_backend_pid()")
        )
    with pytest.raises(CatalogAwayError, match="does not answer just now"), sessions.reading() as s:
        s.execute(text("SELECT 1"))
    with sessions.reading() as session:
        assert session.scalar(text("SELECT 1")) == 1
    sessions.close()


def test_a_question_gives_values_as_the_tables_have_them(catalog: Catalog) -> None:
    with catalog.writing() as session:
        number = dataset(session, "credit.exposure", declaration_json={"format": "csv"})
    with catalog.reading() as session:
        found = describe_dataset(session, number)
    assert found.needs_validation is False
    assert found.created_at == NOON
    assert found.declaration_json == {"format": "csv"}


def test_datasets_of_one_name_are_told_apart_on_a_page(catalog: Catalog) -> None:
    with catalog.writing() as session:
        for namespace in ("a", "b", "c"):
            full_name = f"{namespace}/same"
            dataset(session, "same", namespace=namespace, full_name=full_name, category="x")
        dataset(session, "other")
    with catalog.reading() as session:
        first = page_datasets(session, 2, category="x")
        last = first[-1]
        rest = page_datasets(session, 2, after=(last.name, last.dataset_id), category="x")
    assert [hit.full_name for hit in [*first, *rest]] == ["a/same", "b/same", "c/same"]


@pytest.mark.parametrize(
    "question",
    [
        _VIEW,
        _TAGS,
        _NEIGHBOURS,
        _RUN_VIEW,
        _INPUTS,
        _OUTPUTS,
        _STEPS,
        _dataset_page(50, ("category", "team"), started=True),
        _process_page(50, 2),
        _version_page(50, started=True),
        _run_page(50, 2, ("process_id", "since", "before_id")),
    ],
)
def test_every_question_can_be_put_to_db2(question: Question[tuple[object, ...]]) -> None:
    written = str(question.statement.compile(dialect=adapt(DB2Dialect_ibm_db())))
    assert written.startswith("SELECT")


def test_a_question_can_be_asked_with_other_values_again(catalog: Catalog) -> None:
    question: Question[tuple[str]] = Question(
        lambda name: (name,),
        select(Dataset.name).where(Dataset.name == bindparam("name", type_=String())),
    )
    with catalog.writing() as session:
        dataset(session, "a")
        assert question.ask(session, name="a") == [("a",)]
        assert question.ask_one(session, name="b") is None
