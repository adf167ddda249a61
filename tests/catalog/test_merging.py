"""Merging rows on PostgreSQL: few statements, one transaction."""

from datetime import UTC, datetime

import pytest
from psycopg.errors import DataError, LockNotAvailable, UniqueViolation
from sqlalchemy import Connection

from floe.catalog.database import Catalog
from floe.catalog.stores.merging import Lookup, Merge, Row
from floe.catalog.stores.postgresql_merging import PostgresqlMerging, number_array, text_array

PROCESSES = Merge(
    "process",
    ("process_key", "name", "trigger_mode", "status", "created_at"),
    key=("process_key",),
    returning=("process_key",),
)
KEYS = Lookup("process", ("process_key",), by=("process_key",))
HEAD = "SELECT last_position FROM change_head WHERE head_id = 1 FOR UPDATE NOWAIT"

pytestmark = [
    pytest.mark.postgresql,
    pytest.mark.parametrize("catalog", ["postgresql"], indirect=True),
]


def row(key: str) -> Row:
    made = PostgresqlMerging().encode_time(datetime(2026, 9, 1, tzinfo=UTC))
    return (key, key[:300], "process", "ACTIVE", made)


def write(merging: PostgresqlMerging, connection: Connection, *rows: Row) -> None:
    """Write rows, a statement each."""
    with merging.pipeline(connection):
        for one in rows:
            merging.merge(connection, PROCESSES, [one])


def give_up(merging: PostgresqlMerging, connection: Connection, one: Row) -> None:
    with merging.pipeline(connection):
        assert merging.merge_returning(connection, PROCESSES, [one]).fetchall() == [(one[0],)]
        raise KeyError


def keys(connection: Connection) -> set[str]:
    rows = connection.exec_driver_sql("SELECT process_key FROM process").all()
    connection.rollback()
    return {str(key) for (key,) in rows}


def test_the_change_log_stays_locked_until_the_commit(catalog: Catalog) -> None:
    merging = PostgresqlMerging()
    with catalog.engine.connect() as writer, catalog.engine.connect() as other:
        with merging.pipeline(writer):
            merging.lock_log(writer)
            # The answer to what is asked next comes after the lock was taken.
            assert merging.find(writer, KEYS, ["nobody"]).fetchall() == []
            with pytest.raises(LockNotAvailable):
                other.connection.cursor().execute(HEAD)
            other.connection.rollback()
        other.connection.cursor().execute(HEAD)
        other.connection.rollback()


def test_rows_are_committed_at_the_end(catalog: Catalog) -> None:
    merging = PostgresqlMerging()
    with catalog.engine.connect() as writer, catalog.engine.connect() as other:
        with merging.pipeline(writer):
            assert merging.merge_returning(writer, PROCESSES, [row("a")]).fetchall() == [("a",)]
            assert keys(other) == set()
        assert keys(other) == {"a"}


def test_a_transaction_started_before_is_committed_by_its_owner(catalog: Catalog) -> None:
    merging = PostgresqlMerging()
    with catalog.engine.connect() as writer, catalog.engine.connect() as other:
        writer.exec_driver_sql("SELECT 1")
        with merging.pipeline(writer):
            merging.merge(writer, PROCESSES, [row("a")])
        assert keys(other) == set()
        writer.commit()
        assert keys(other) == {"a"}


def test_nothing_is_committed_when_a_statement_fails(catalog: Catalog) -> None:
    merging = PostgresqlMerging()
    with catalog.engine.connect() as writer, catalog.engine.connect() as other:
        with pytest.raises(DataError, match="too long"):
            write(merging, writer, row("a"), row("b" * 601))
        writer.invalidate()
        assert keys(other) == set()


def test_a_statement_sees_what_the_previous_one_wrote(catalog: Catalog) -> None:
    merging = PostgresqlMerging()
    with catalog.engine.connect() as writer, merging.pipeline(writer):
        merging.merge(writer, PROCESSES, [row("a")])
        assert merging.find(writer, KEYS, ["a"]).fetchall() == [("a",)]


def test_nothing_is_committed_when_the_writer_raises(catalog: Catalog) -> None:
    merging = PostgresqlMerging()
    with catalog.engine.connect() as writer, catalog.engine.connect() as other:
        with pytest.raises(KeyError):
            give_up(merging, writer, row("a"))
        assert keys(other) == set()
        write(merging, writer, row("b"))
        assert keys(other) == {"b"}


def test_a_commit_that_fails_is_an_error(catalog: Catalog) -> None:
    merging = PostgresqlMerging()
    with catalog.engine.connect() as writer, catalog.engine.connect() as other:
        writer.exec_driver_sql(
            "ALTER TABLE process ADD CONSTRAINT once UNIQUE (name) DEFERRABLE INITIALLY DEFERRED"
        )
        writer.commit()
        with pytest.raises(UniqueViolation, match="once"):
            write(merging, writer, row("a"), ("b", *row("a")[1:]))
        assert keys(other) == set()
        write(merging, writer, row("c"))
        assert keys(other) == {"c"}


def test_a_new_table_is_read_by_its_index(
    catalog: Catalog,
) -> None:
    merging = PostgresqlMerging()
    with catalog.engine.connect() as writer:
        merging.prepare(writer)
        plan = writer.exec_driver_sql("EXPLAIN SELECT 1 FROM process WHERE process_key = 'a'").all()
        assert "Index" in plan[0][0]
        writer.invalidate()


@pytest.mark.parametrize(
    "values",
    [
        ["plain", "two words", ""],
        ['a "quoted" one', "back\\slash", "comma, {brace}"],
        ["unit\x1fseparator", 'and "quotes"'],
        [None, "NULL", 'n"one'],
        ["grüße", "line\nbreak"],
    ],
)
def test_a_text_array_arrives_unchanged(catalog: Catalog, values: list[str | None]) -> None:
    with catalog.engine.connect() as connection:
        answer = connection.exec_driver_sql("SELECT %s::text[]", (text_array(values),))
        assert answer.scalar_one() == values


def test_a_number_array_arrives_unchanged(catalog: Catalog) -> None:
    values = [1, None, -(2**62)]
    with catalog.engine.connect() as connection:
        answer = connection.exec_driver_sql("SELECT %s::bigint[]", (number_array(values),))
        assert answer.scalar_one() == values
