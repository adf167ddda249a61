"""Sessions of a server, and the typed queries that run in them."""

from contextlib import ExitStack

import pytest
from ibm_db_sa.ibm_db import DB2Dialect_ibm_db
from sqlalchemy import String, bindparam, select, text

from floe.catalog.database import MAX_IDLE, TRUSTED_SECONDS, Catalog, CatalogOutageError, Sessions
from floe.catalog.dataset_details import _DETAIL, _NEIGHBOURS, _TAGS, describe_dataset
from floe.catalog.datasets import _dataset_page, page_datasets
from floe.catalog.errors import DatasetNotFoundError
from floe.catalog.processes import _process_page
from floe.catalog.queries import TypedQuery
from floe.catalog.runs import _INPUTS, _OUTPUTS, _RUN_DETAIL, _STEPS, _run_page
from floe.catalog.stores.db2 import adapt
from floe.catalog.tables import Dataset
from floe.catalog.version_queries import _version_page
from tests.catalog.graph import NOON, dataset


class Clock:
    """A clock that the test moves."""

    at = 0.0

    def __call__(self) -> float:
        return self.at


def test_a_connection_is_reused_while_it_is_trusted(catalog: Catalog) -> None:
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


def test_only_a_few_idle_sessions_are_kept_after_a_peak(catalog: Catalog) -> None:
    sessions = Sessions(catalog)
    with ExitStack() as stack:
        for _ in range(MAX_IDLE + 3):
            stack.enter_context(sessions.reading()).connection()
    assert len(sessions._idle) == MAX_IDLE
    sessions.close()


def test_changes_of_a_reading_session_are_discarded(catalog: Catalog) -> None:
    sessions = Sessions(catalog)
    with sessions.reading() as session:
        session.add(Dataset(namespace="a", name="b", full_name="a/b", status="ACTIVE"))
    with sessions.reading() as session:
        assert session.scalars(select(Dataset)).all() == []
    sessions.close()


def test_a_reader_sees_what_was_committed_since(catalog: Catalog) -> None:
    sessions = Sessions(catalog)
    with sessions.reading() as session, pytest.raises(DatasetNotFoundError):
        describe_dataset(session, 1)
    with catalog.writing() as session:
        dataset_id = dataset(session, "credit.exposure")
    with sessions.reading() as session:
        assert describe_dataset(session, dataset_id).name == "credit.exposure"
    sessions.close()


def test_an_error_in_a_session_closes_its_connection(catalog: Catalog) -> None:
    sessions = Sessions(catalog)
    with pytest.raises(ZeroDivisionError), sessions.reading():
        raise ZeroDivisionError
    assert not sessions._idle


@pytest.mark.postgresql
def test_a_cut_connection_is_reported_as_an_outage_and_replaced(
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
    outage = pytest.raises(CatalogOutageError, match="The catalog is unavailable")
    with outage, sessions.reading() as session:
        session.execute(text("SELECT 1"))
    with sessions.reading() as session:
        assert session.scalar(text("SELECT 1")) == 1
    sessions.close()


def test_a_typed_query_converts_values_like_the_tables(catalog: Catalog) -> None:
    with catalog.writing() as session:
        dataset_id = dataset(session, "credit.exposure", declaration_json={"format": "csv"})
    with catalog.reading() as session:
        view = describe_dataset(session, dataset_id)
    assert view.needs_validation is False
    assert view.created_at == NOON
    assert view.declaration_json == {"format": "csv"}


def test_pages_can_end_between_datasets_of_the_same_name(catalog: Catalog) -> None:
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
    "query",
    [
        _DETAIL,
        _TAGS,
        _NEIGHBOURS,
        _RUN_DETAIL,
        _INPUTS,
        _OUTPUTS,
        _STEPS,
        _dataset_page(50, ("category", "team"), started=True),
        _process_page(50, 2),
        _version_page(50, started=True),
        _run_page(50, 2, ("process_id", "since", "before_id")),
    ],
)
def test_every_typed_query_compiles_for_db2(query: TypedQuery[tuple[object, ...]]) -> None:
    sql = str(query.statement.compile(dialect=adapt(DB2Dialect_ibm_db())))
    assert sql.startswith("SELECT")


def test_a_typed_query_can_be_run_again_with_other_values(catalog: Catalog) -> None:
    query: TypedQuery[tuple[str]] = TypedQuery(
        lambda name: (name,),
        select(Dataset.name).where(Dataset.name == bindparam("name", type_=String())),
    )
    with catalog.writing() as session:
        dataset(session, "a")
        assert query.fetch(session, name="a") == [("a",)]
        assert query.fetch_one(session, name="b") is None
