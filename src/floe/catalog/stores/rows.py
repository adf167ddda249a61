"""What several stores do with rows in the same way."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from sqlalchemy import Dialect, delete, func, select
from sqlalchemy import Table as CoreTable
from sqlalchemy.orm import Session
from sqlalchemy.types import TypeEngine

from floe.catalog.tables import RunEvent, Table


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
    """Return the values of each column, as the driver takes them."""
    columns = core_table(table).c
    return {
        name: _bind(columns[name].type, [row[name] for row in rows], dialect) for name in rows[0]
    }


def _bind(kind: TypeEngine[Any], values: list[Any], dialect: Dialect) -> list[Any]:
    process = kind.dialect_impl(dialect).bind_processor(dialect)
    return [process(value) for value in values] if process else values


def delete_event_days(session: Session, before: date) -> int:
    """Delete the events of all days before this one; return how many days went."""
    old = RunEvent.event_day < before
    days = session.scalars(select(func.count(RunEvent.event_day.distinct())).where(old)).one()
    session.execute(delete(RunEvent).where(old))
    return days
