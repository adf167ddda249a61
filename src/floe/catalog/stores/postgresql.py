"""PostgreSQL, for production: array parameters, tsvector, daily partitions."""

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

from floe.catalog.stores.store import (
    Fault,
    SearchDocument,
    bind_columns,
    core_table,
    fault_of_sqlstate,
    in_key_order,
)
from floe.catalog.tables import Table

CONNECT_SECONDS = 10
# A session that leaves its transaction open would block rows and vacuum.
IDLE_TRANSACTION = "5min"
# A session that waits for an exclusive lock on the event table blocks ingestion, so it gives up
# soon and retries later.
EVENT_LOCK_WAIT = "2s"
# Keys for pg_advisory_xact_lock; any distinct integers will do.
MIGRATION_LOCK = 7_310_001
EVENT_DAYS_LOCK = 7_310_002
EVENT_DAY_NAME = "run_event_%Y%m%d"
# Weight of a match by its label: D is the description, C owner and columns, B tags, A the name.
WEIGHTS = "{0.1, 0.2, 0.5, 1.0}"

# Shared, because SQLAlchemy inspects every new type object.
NUMBERS = ARRAY(BigInteger)


class PostgresqlStore:
    """The catalog in PostgreSQL."""

    name = "postgresql"
    search_key = "dataset_id"

    def engine_options(self, url: URL) -> dict[str, Any]:
        defaults = {
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "floe",
            "options": f"-c idle_in_transaction_session_timeout={IDLE_TRANSACTION}",
        }
        options = {name: value for name, value in defaults.items() if name not in url.query}
        # A pooled connection may be dead after a restart of the server.
        return {"connect_args": options, "pool_pre_ping": True}

    def prepare_engine(self, engine: Engine) -> None:
        """Nothing to do: the driver gets all settings when it connects."""

    def fault_of(self, error: BaseException) -> Fault:
        from psycopg import DataError, InterfaceError, OperationalError

        state = getattr(error, "sqlstate", None)
        if state:
            return fault_of_sqlstate(state)
        # Errors without a state come from the driver: values that it cannot send, or no connection.
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
        # ts_rank adds up, so many small matches would outweigh a match in the name: those are
        # ranked first explicitly. The flags after the query prefer short documents (1) and scale
        # the rank below 1 (32).
        query = text(
            "SELECT dataset_id, "
            "CASE WHEN document @@ in_name THEN 0 ELSE 1 END "
            "- ts_rank(CAST(:weights AS real[]), document, query, 1 | 32) AS rank "
            "FROM dataset_search, to_tsquery('simple', :query) AS query, "
            "to_tsquery('simple', :in_name) AS in_name "
            "WHERE document @@ query"
        ).bindparams(
            weights=WEIGHTS, query=_prefix_query(words), in_name=_prefix_query(words, label="A")
        )
        return query.columns(named("dataset_id"), named("rank")).subquery("matches")

    def prepare_event_days(self, session: Session, first: date, last: date) -> None:
        wanted = [first + timedelta(days) for days in range((last - first).days + 1)]
        if set(wanted) <= _event_days(session):
            return
        _lock_event_days(session)
        existing = _event_days(session)
        for day in wanted:
            if day not in existing:
                _add_event_day(session, day)

    def event_writers(self, session: Session) -> set[str]:
        return set(session.scalars(text(EVENT_WRITERS)))


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

# An INSERT holds this lock from before it draws an id until its transaction ends.
EVENT_WRITERS = """
SELECT DISTINCT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted
  AND relation = 'run_event'::regclass
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

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
    """Return an upsert with one array per column, for any row count."""
    own = core_table(table).c
    arrays = ", ".join(f"%({name})b::{_element(own[name], dialect)}[]" for name in columns)
    changed = ", ".join(f"{name} = excluded.{name}" for name in update)
    return (
        f"INSERT INTO {table.__tablename__} ({', '.join(columns)}) "  # noqa: S608
        f"SELECT * FROM unnest({arrays}) "
        f"ON CONFLICT ({', '.join(key)}) DO {f'UPDATE SET {changed}' if changed else 'NOTHING'}"
    )


def _element(column: Column[Any], dialect: Dialect) -> str:
    name = column.type.compile(dialect)
    # A cast to VARCHAR(n) truncates a longer string; as TEXT it reaches the column and fails.
    return "TEXT" if name.startswith(("VARCHAR", "CHAR")) else name


def _prefix_query(words: Sequence[str], label: str = "") -> str:
    """Return a tsquery for all words, the last as a prefix; limited by `label`."""
    quoted = ["'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in words]
    marks = [f":{label}" if label else ""] * (len(words) - 1) + [f":*{label}"]
    return " & ".join(word + mark for word, mark in zip(quoted, marks, strict=True))


def _lock_event_days(session: Session) -> None:
    """Lock the event table exclusively.

    Sessions that add days queue at the advisory lock, not at the table. Every session that touches
    a partition locks the whole table first, so there is no deadlock.
    """
    session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": EVENT_DAYS_LOCK})
    session.execute(text(f"SET LOCAL lock_timeout = '{EVENT_LOCK_WAIT}'"))
    session.execute(text("LOCK TABLE ONLY run_event IN ACCESS EXCLUSIVE MODE"))


def _event_days(session: Session) -> set[date]:
    names = session.scalars(text(EVENT_PARTITIONS))
    return {datetime.strptime(name, EVENT_DAY_NAME).date() for name in names}  # noqa: DTZ007


def _add_event_day(session: Session, day: date) -> None:
    """Create the day's partition; move its events there from the default one."""
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
