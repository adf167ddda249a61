"""PostgreSQL, the production store: rows by arrays, words by tsvector, events by day."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Engine,
    Subquery,
    any_,
    bindparam,
    literal,
    text,
)
from sqlalchemy import column as named
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Session

from floe.catalog.stores.contract import SearchDocument
from floe.catalog.stores.faults import Fault, fault_of_sqlstate
from floe.catalog.stores.rows import bind_columns, core_table, in_key_order
from floe.catalog.tables import Table

CONNECT_SECONDS = 10
# A session that forgot its transaction would keep rows locked and dead rows from vacuum.
IDLE_TRANSACTION = "5min"
# Whoever waits for the whole event table holds up the ingestion behind it: better to give up
# soon and try again later.
EVENT_LOCK_WAIT = "2s"
# Numbers for pg_advisory_xact_lock; any will do as long as they differ.
MIGRATION_LOCK = 7_310_001
EVENT_DAYS_LOCK = 7_310_002
EVENT_DAY_NAME = "run_event_%Y%m%d"
# What a hit weighs by its label: D is the description, C owner and columns, B tags, A the name.
WEIGHTS = "{0.1, 0.2, 0.5, 1.0}"

# One for all: SQLAlchemy examines each type that it has not seen before.
NUMBERS = ARRAY(BigInteger)


class PostgresqlStore:
    """The catalog in PostgreSQL."""

    name = "postgresql"
    search_key = "dataset_id"

    def engine_options(self, url: URL) -> dict[str, Any]:
        wanted = {
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "floe",
            "options": f"-c idle_in_transaction_session_timeout={IDLE_TRANSACTION}",
        }
        ours = {name: value for name, value in wanted.items() if name not in url.query}
        # A pooled connection may have died with a restart of the server.
        return {"connect_args": ours, "pool_pre_ping": True}

    def prepare_engine(self, engine: Engine) -> None:
        """Nothing to do: the driver takes all settings when it connects."""

    def fault_of(self, error: BaseException) -> Fault:
        from psycopg import DataError, InterfaceError, OperationalError

        state = getattr(error, "sqlstate", None)
        if state:
            return fault_of_sqlstate(state)
        # Without a state it comes from the driver: values that it cannot send, or no connection.
        if isinstance(error, DataError):
            return Fault.DATA
        lost = isinstance(error, OperationalError | InterfaceError)
        return Fault.DATABASE if lost else Fault.UNKNOWN

    def lock_migrations(self, connection: Connection) -> None:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})

    def upsert(
        self,
        session: Session,
        table: type[Table],
        rows: Sequence[dict[str, Any]],
        key: Sequence[str],
        update: Sequence[str],
    ) -> None:
        session.flush()
        if not rows:
            return
        connection = session.connection()
        columns = tuple(rows[0])
        statement = _upsert_statement(table, columns, tuple(key), tuple(update), connection.dialect)
        arrays = bind_columns(table, in_key_order(rows, key), connection.dialect)
        connection.exec_driver_sql(statement, arrays)

    def among(self, column: ColumnElement[int], values: Sequence[int] | str) -> ColumnElement[bool]:
        if isinstance(values, str):
            return column == any_(bindparam(values, type_=NUMBERS))
        return column == any_(literal(list(values), NUMBERS))

    def search_ddl(self) -> Sequence[str]:
        return (
            "CREATE TABLE dataset_search ("
            "dataset_id BIGINT PRIMARY KEY REFERENCES dataset (dataset_id), "
            "document TSVECTOR NOT NULL)",
            "CREATE INDEX idx_dataset_search ON dataset_search USING gin (document)",
        )

    def index_documents(self, session: Session, documents: Sequence[SearchDocument]) -> None:
        if not documents:
            return
        fields = list(vars(documents[0]))
        arrays = {field: [vars(each)[field] for each in documents] for field in fields}
        session.connection().exec_driver_sql(INDEX_DOCUMENTS, arrays)

    def drop_documents(self, session: Session, dataset_ids: Sequence[int]) -> None:
        ids = [{"id": dataset_id} for dataset_id in dataset_ids]
        session.execute(text("DELETE FROM dataset_search WHERE dataset_id = :id"), ids)

    def matches(self, words: Sequence[str]) -> Subquery:
        # ts_rank adds up, so that many small hits outweigh one in the name: that one comes first
        # by itself. The numbers after the query put concise datasets before long ones (1) and
        # bring the rank below one (32).
        found = text(
            "SELECT dataset_id, "
            "CASE WHEN document @@ in_name THEN 0 ELSE 1 END "
            "- ts_rank(CAST(:weights AS real[]), document, query, 1 | 32) AS rank "
            "FROM dataset_search, to_tsquery('simple', :query) AS query, "
            "to_tsquery('simple', :in_name) AS in_name "
            "WHERE document @@ query"
        ).bindparams(
            weights=WEIGHTS, query=_prefix_query(words), in_name=_prefix_query(words, label="A")
        )
        return found.columns(named("dataset_id"), named("rank")).subquery("matches")

    def prepare_event_days(self, session: Session, first: date, last: date) -> None:
        wanted = [first + timedelta(days) for days in range((last - first).days + 1)]
        if set(wanted) <= _event_days(session):
            return
        _lock_event_days(session)
        there = _event_days(session)
        for day in wanted:
            if day not in there:
                _add_event_day(session, day)

    def drop_event_days(self, session: Session, before: date) -> int:
        return _drop_partitions(session, before) + _delete_strays(session, before)


INDEX_DOCUMENTS = """
INSERT INTO dataset_search (dataset_id, document)
SELECT dataset_id,
       setweight(to_tsvector('simple', name), 'A')
    || setweight(to_tsvector('simple', tags), 'B')
    || setweight(to_tsvector('simple', owner), 'C')
    || setweight(to_tsvector('simple', columns), 'C')
    || setweight(to_tsvector('simple', description), 'D')
FROM unnest(
    %(dataset_id)s::bigint[], %(name)s::text[], %(tags)s::text[],
    %(owner)s::text[], %(columns)s::text[], %(description)s::text[]
) AS given (dataset_id, name, tags, owner, columns, description)
ON CONFLICT (dataset_id) DO UPDATE SET document = excluded.document
"""

STRAY_DAYS = "SELECT count(DISTINCT event_day) FROM run_event_default WHERE event_day < :before"
DELETE_STRAYS = "DELETE FROM run_event_default WHERE event_day < :before"

EVENT_PARTITIONS = """
SELECT child.relname FROM pg_inherits
JOIN pg_class child ON child.oid = inhrelid
WHERE inhparent = 'run_event'::regclass AND child.relname <> 'run_event_default'
"""


@lru_cache(maxsize=256)
def _upsert_statement(
    table: type[Table],
    columns: tuple[str, ...],
    key: tuple[str, ...],
    update: tuple[str, ...],
    dialect: Dialect,
) -> str:
    """Write the upsert with one array per column: one statement text whatever the row count."""
    own = core_table(table).c
    arrays = ", ".join(f"%({name})b::{_element(own[name], dialect)}[]" for name in columns)
    changed = ", ".join(f"{name} = excluded.{name}" for name in update)
    return (
        f"INSERT INTO {table.__tablename__} ({', '.join(columns)}) "  # noqa: S608
        f"SELECT * FROM unnest({arrays}) "
        f"ON CONFLICT ({', '.join(key)}) DO {f'UPDATE SET {changed}' if changed else 'NOTHING'}"
    )


def _element(column: Column[Any], dialect: Dialect) -> str:
    written = column.type.compile(dialect)
    # A cast to VARCHAR(n) cuts a longer string off; as TEXT it reaches the column and is refused.
    return "TEXT" if written.startswith(("VARCHAR", "CHAR")) else written


def _prefix_query(words: Sequence[str], label: str = "") -> str:
    """Ask for every word, the last one as a prefix, where a label is given only under it."""
    quoted = ["'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in words]
    marks = [f":{label}" if label else ""] * (len(words) - 1) + [f":*{label}"]
    return " & ".join(word + mark for word, mark in zip(quoted, marks, strict=True))


def _lock_event_days(session: Session) -> None:
    """Wait for the event table to be ours alone.

    Others who add or drop days queue up before the table, not at it. Then everybody who touches
    a partition holds a lock on the whole table first, so there is nobody left to deadlock with.
    """
    session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": EVENT_DAYS_LOCK})
    session.execute(text(f"SET LOCAL lock_timeout = '{EVENT_LOCK_WAIT}'"))
    session.execute(text("LOCK TABLE ONLY run_event IN ACCESS EXCLUSIVE MODE"))


def _event_days(session: Session) -> set[date]:
    names = session.scalars(text(EVENT_PARTITIONS))
    return {datetime.strptime(name, EVENT_DAY_NAME).date() for name in names}  # noqa: DTZ007


def _drop_partitions(session: Session, before: date) -> int:
    if all(day >= before for day in _event_days(session)):
        return 0
    _lock_event_days(session)
    old = [day for day in _event_days(session) if day < before]
    for day in old:
        session.execute(text(f"DROP TABLE {day:{EVENT_DAY_NAME}}"))
    return len(old)


def _delete_strays(session: Session, before: date) -> int:
    """Delete old events that lie in the default partition; return how many days they were of.

    It comes last: to hold rows there and then wait for the whole table would be a deadlock with
    those who add a day.
    """
    days = session.scalars(text(STRAY_DAYS), {"before": before}).one()
    session.execute(text(DELETE_STRAYS), {"before": before})
    return int(days)


def _add_event_day(session: Session, day: date) -> None:
    """Make the day's partition, with the events that came before it existed."""
    name = f"{day:{EVENT_DAY_NAME}}"
    session.execute(text(f"CREATE TABLE {name} (LIKE run_event INCLUDING STORAGE)"))
    session.execute(
        text(
            f"WITH early AS (DELETE FROM run_event_default WHERE event_day = :day RETURNING *) "  # noqa: S608
            f"INSERT INTO {name} SELECT * FROM early"
        ),
        {"day": day},
    )
    session.execute(
        text(
            f"ALTER TABLE run_event ATTACH PARTITION {name} "
            f"FOR VALUES FROM ('{day}') TO ('{day + timedelta(1)}')"
        )
    )
