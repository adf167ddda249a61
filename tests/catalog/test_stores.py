"""What each store must do: upserts by key, long lists of ids, full-text search."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import DataError, DBAPIError
from sqlalchemy.orm import Session

from floe.catalog import stores as store_module
from floe.catalog.database import Catalog
from floe.catalog.stores import SearchDocument, UnknownStoreError, store_for, store_of
from floe.catalog.tables import Dataset, Lease, ProcessRun, Project, Table

CATALOG = Path(store_module.__file__).parents[1]
NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)


def lease(name: str, holder: str, fence: int = 1) -> dict[str, Any]:
    return {
        "name": name,
        "holder": holder,
        "fence": fence,
        "acquired_at": NOON,
        "expires_at": NOON,
    }


def upsert_leases(session: Session, *rows: dict[str, Any], update: tuple[str, ...] = ()) -> None:
    store_of(session).upsert(session, Lease, rows, key=("name",), update=update)


def holders(session: Session) -> dict[str, str]:
    return {row.name: row.holder for row in session.scalars(select(Lease))}


def add_dataset(session: Session, name: str) -> int:
    dataset = Dataset(
        namespace="lake",
        name=name,
        full_name=f"lake/{name}",
        status="ACTIVE",
        needs_validation=False,
        created_at=NOON,
    )
    session.add(dataset)
    session.flush()
    return dataset.dataset_id


def index(session: Session, name: str, **fields: str) -> int:
    dataset_id = add_dataset(session, name)
    words = {"tags": "", "owner": "", "columns": "", "description": "", **fields}
    document = SearchDocument(dataset_id, name=name.replace(".", " ").replace("_", " "), **words)
    store_of(session).index_documents(session, [document])
    return dataset_id


def found(session: Session, *words: str) -> list[int]:
    matches = store_of(session).matches(words)
    return list(session.scalars(select(matches.c.dataset_id).order_by(matches.c.rank)))


def test_a_new_key_is_inserted_and_an_existing_one_updated(catalog: Catalog) -> None:
    with catalog.writing() as session:
        upsert_leases(session, lease("orders", "ada"))
        upsert_leases(session, lease("orders", "bob"), lease("rates", "cy"), update=("holder",))
        assert holders(session) == {"orders": "bob", "rates": "cy"}


def test_only_the_named_columns_are_overwritten(catalog: Catalog) -> None:
    with catalog.writing() as session:
        upsert_leases(session, lease("orders", "ada", fence=1))
        upsert_leases(session, lease("orders", "bob", fence=2), update=("fence",))
        kept = session.scalars(select(Lease)).one()
        assert (kept.holder, kept.fence) == ("ada", 2)


def test_without_columns_to_update_an_existing_row_is_unchanged(catalog: Catalog) -> None:
    with catalog.writing() as session:
        upsert_leases(session, lease("orders", "ada"))
        upsert_leases(session, lease("orders", "bob"))
        assert holders(session) == {"orders": "ada"}


def test_the_last_row_wins_when_a_key_comes_twice(catalog: Catalog) -> None:
    with catalog.writing() as session:
        twice = lease("orders", "ada"), lease("orders", "bob")
        upsert_leases(session, *twice, update=("holder",))
        assert holders(session) == {"orders": "bob"}


def test_no_rows_run_no_statement(catalog: Catalog) -> None:
    with catalog.writing() as session:
        upsert_leases(session)
        assert holders(session) == {}


def test_more_rows_than_one_statement_takes_are_all_written(catalog: Catalog) -> None:
    with catalog.writing() as session:
        upsert_leases(session, *[lease(f"lease {number}", "ada") for number in range(5_000)])
        assert session.scalar(select(func.count()).select_from(Lease)) == 5_000


def test_every_kind_of_column_survives_an_upsert(catalog: Catalog) -> None:
    with catalog.writing() as session:
        process_id = _add_process(session)
        run = {
            "run_uuid": "0199C0DE-0000-7000-8000-00000000ABCD",
            "process_id": process_id,
            "business_date": NOON.date(),
            "partition_key": None,
            "start_ts": NOON,
            "status": "STARTED",
            "attempt": 1,
            "historical": True,
            "saw_success": False,
            "saw_failure": True,
            "facets_json": {"name": "Zürich", "rows": [1, None]},
            "created_at": NOON,
        }
        store_of(session).upsert(session, ProcessRun, [run], key=("run_uuid",), update=("status",))
        stored = session.scalars(select(ProcessRun)).one()
        same = {name: getattr(stored, name) for name in run}
        assert same == {**run, "run_uuid": "0199c0de-0000-7000-8000-00000000abcd"}


def _add_process(session: Session) -> int:
    from floe.catalog.tables import Process

    process = Process(
        process_key="AUTOSYS/BOX/JOB", trigger_mode="PROCESS", status="ACTIVE", created_at=NOON
    )
    session.add(process)
    session.flush()
    return process.process_id


def test_an_upsert_flushes_the_session_first(catalog: Catalog) -> None:
    with catalog.writing() as session:
        session.add(Lease(**lease("orders", "ada")))
        upsert_leases(session, lease("orders", "bob"), update=("holder",))
    with catalog.reading() as session:
        assert holders(session) == {"orders": "bob"}


@pytest.mark.postgresql
@pytest.mark.parametrize("catalog", ["postgresql"], indirect=True)
def test_a_too_long_string_is_rejected_and_not_truncated(catalog: Catalog) -> None:
    with pytest.raises(DataError, match="too long"), catalog.writing() as session:
        upsert_leases(session, lease("x" * 301, "ada"))


@pytest.mark.postgresql
@pytest.mark.parametrize("catalog", ["postgresql"], indirect=True)
def test_a_nul_character_is_an_error_of_the_database(catalog: Catalog) -> None:
    with pytest.raises(DBAPIError), catalog.writing() as session:
        upsert_leases(session, lease("a\x00b", "ada"))


@pytest.mark.parametrize("count", [0, 1, 50_000])
def test_a_column_can_be_compared_with_any_number_of_ids(catalog: Catalog, count: int) -> None:
    with catalog.writing() as session:
        upsert_leases(session, *[lease(f"{number}", "ada", fence=number) for number in range(3)])
        listed = store_of(session).among(Lease.__table__.c.fence, range(count))
        fences = session.scalars(select(Lease.fence).where(listed).order_by(Lease.fence)).all()
        assert fences == list(range(min(count, 3)))


def test_a_dataset_is_found_by_all_its_words_and_the_last_as_a_prefix(catalog: Catalog) -> None:
    with catalog.writing() as session:
        customers = index(session, "bronze.raw_customers", owner="crm")
        index(session, "bronze.raw_orders")
        assert found(session, "raw", "cust") == [customers]
        assert found(session, "cust", "raw") == []
        assert found(session, "crm", "bronze") == [customers]


def test_a_hit_in_the_name_comes_before_one_in_the_description(catalog: Catalog) -> None:
    with catalog.writing() as session:
        described = index(session, "gold.pnl", description="uses the exposure of the day")
        named = index(session, "gold.exposure")
        assert found(session, "exposure") == [named, described]


def test_indexing_again_replaces_the_old_words(catalog: Catalog) -> None:
    with catalog.writing() as session:
        dataset_id = index(session, "gold.pnl", tags="daily")
        renamed = SearchDocument(dataset_id, "gold profit", "", "", "", "")
        store_of(session).index_documents(session, [renamed])
        assert found(session, "daily") == []
        assert found(session, "profit") == [dataset_id]


@pytest.mark.parametrize("word", ["it's", 'say"so', "back\\slash", "a:*", "a & b", "(", "NOT"])
def test_no_word_can_break_the_query(catalog: Catalog, word: str) -> None:
    with catalog.writing() as session:
        index(session, "gold.pnl")
        assert found(session, "silver", word) == []


def test_no_documents_run_no_statement(catalog: Catalog) -> None:
    with catalog.writing() as session:
        store_of(session).index_documents(session, [])


def test_an_unsupported_database_is_named_in_the_error() -> None:
    with pytest.raises(UnknownStoreError, match="Unsupported catalog database 'oracle'"):
        store_for("oracle")


def test_every_column_under_a_unique_key_is_not_null() -> None:
    nullable = [
        f"{table.name}.{column.name}"
        for table in Table.metadata.sorted_tables
        for columns in _unique_columns(table)
        for column in columns
        if column.nullable
    ]
    assert nullable == []


def _unique_columns(table: Any) -> list[Any]:
    from sqlalchemy import UniqueConstraint

    constraints = [one.columns for one in table.constraints if isinstance(one, UniqueConstraint)]
    return [*constraints, *[one.columns for one in table.indexes if one.unique], table.primary_key]


def test_only_stores_write_sql_by_hand() -> None:
    by_hand = re.compile(r"^from sqlalchemy import .*\btext\b", re.MULTILINE)
    modules = [path for path in CATALOG.glob("*.py") if by_hand.search(path.read_text())]
    assert modules == []


def test_names_that_a_dialect_reserves_are_written_without_quotes(catalog: Catalog) -> None:
    with catalog.writing() as session:
        session.add(
            Project(name="demo", version="1", timezone="UTC", content_hash="x", created_at=NOON)
        )
        session.flush()
        assert session.scalars(select(Project.version)).all() == ["1"]
