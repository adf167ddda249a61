"""The Store protocol that each catalog database implements, and code they share."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any, Protocol

from sqlalchemy import URL, ColumnElement, Connection, Dialect, Engine, Subquery
from sqlalchemy import Table as CoreTable
from sqlalchemy.orm import Session
from sqlalchemy.types import TypeEngine

from floe.catalog.tables import Table


class Fault(Enum):
    """What caused an error of the database driver.

    Only data errors may be reported as the sender's fault. Senders discard rejected events, so any
    other error must stay retriable.
    """

    DATA = "data"
    """Invalid values: the same rows fail again on a healthy database."""
    DATABASE = "database"
    """The database is unavailable: every write fails until it is repaired."""
    UNKNOWN = "unknown"
    """Unclear: it may concern one row or all of them."""


# Data exception, integrity constraint violation, program limit exceeded (row or index too large).
DATA_CLASSES = ("22", "23", "54")
# Connection, transaction state (read-only after a failover), authorization, unknown database or
# schema, resources, locks, operator intervention, system errors, damaged data.
DATABASE_CLASSES = ("08", "25", "28", "3D", "3F", "53", "55", "57", "58", "XX")
# Missing tables and columns, revoked privileges.
DATABASE_STATES = frozenset({"42P01", "42703", "42501", "42704"})


def fault_of_sqlstate(state: str) -> Fault:
    """Classify an SQLSTATE."""
    if state.startswith(DATA_CLASSES):
        return Fault.DATA
    if state in DATABASE_STATES or state.startswith(DATABASE_CLASSES):
        return Fault.DATABASE
    return Fault.UNKNOWN


@dataclass(frozen=True)
class SearchDocument:
    """The searchable words of a dataset, the field with the highest weight first."""

    dataset_id: int
    name: str
    tags: str
    owner: str
    columns: str
    description: str


class Store(Hashable, Protocol):
    """The part of the catalog that differs from database to database."""

    name: str
    search_key: str  # the column of dataset_search that holds the dataset id

    def engine_options(self, url: URL) -> dict[str, Any]:
        """Return engine options: timeouts, pool. Options in the URL take precedence."""

    def prepare_engine(self, engine: Engine) -> None:
        """Set up what every connection needs: pragmas, transaction modes."""

    def fault_of(self, error: BaseException) -> Fault:
        """Classify an error of the driver."""

    def lock_migrations(self, connection: Connection) -> None:
        """Lock migrations against other processes until the transaction ends."""

    def upsert(
        self,
        session: Session,
        table: type[Table],
        rows: Sequence[dict[str, Any]],
        key: Sequence[str],
        update: Sequence[str],
    ) -> None:
        """Insert rows; where the key exists, overwrite the `update` columns.

        All rows have the same columns, named as in the database. The last row of a key wins. Rows
        are written in the order of their keys, so that two writers of the same rows wait for each
        other and do not deadlock. Objects of this table that the session has loaded keep their old
        values until they are refreshed.
        """

    def among(self, column: ColumnElement[int], values: Sequence[int] | str) -> ColumnElement[bool]:
        """Return a condition `column IN values`, with one bound parameter where possible.

        A string names the parameter to bind later, so that a frequent statement is built once.
        """

    def search_ddl(self) -> Sequence[str]:
        """Return the statements that create the full-text index `dataset_search`."""

    def index_documents(self, session: Session, documents: Sequence[SearchDocument]) -> None:
        """Add or replace the search documents of datasets, one each."""

    def drop_documents(self, session: Session, dataset_ids: Sequence[int]) -> None:
        """Remove deleted datasets from the search."""

    def matches(self, words: Sequence[str]) -> Subquery:
        """Find datasets that contain every word, the last one as a prefix.

        Columns: dataset_id, rank. The lower the rank, the better the match.
        """

    def prepare_event_days(self, session: Session, first: date, last: date) -> None:
        """Create event partitions for these days, if the store has partitions.

        Safe to repeat, and safe when several processes do it at the same time.
        """

    def event_writers(self, session: Session) -> set[str]:
        """Return open transactions that may still commit events with earlier ids.

        Empty where a database has one writer at a time: ids are then in the order of commits.
        """


def in_key_order(rows: Sequence[dict[str, Any]], key: Sequence[str]) -> list[dict[str, Any]]:
    """Return the last row of each key, sorted by key."""
    last = {tuple(row[name] for name in key): row for row in rows}
    return [last[values] for values in sorted(last)]


def core_table(table: type[Table]) -> CoreTable:
    """Return the table behind a model, with its columns by the database's names."""
    return Table.metadata.tables[table.__tablename__]


def bind_columns(
    table: type[Table], rows: Sequence[dict[str, Any]], dialect: Dialect
) -> dict[str, list[Any]]:
    """Return the values of each column, as the driver expects them."""
    columns = core_table(table).c
    return {
        name: _bind(columns[name].type, [row[name] for row in rows], dialect) for name in rows[0]
    }


def _bind(kind: TypeEngine[Any], values: list[Any], dialect: Dialect) -> list[Any]:
    process = kind.dialect_impl(dialect).bind_processor(dialect)
    return [process(value) for value in values] if process else values
