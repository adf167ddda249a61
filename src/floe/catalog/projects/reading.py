"""Read many rows by name at once, in statements that every store accepts."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute, Session

from floe.catalog.tables import Table

NAMES_PER_STATEMENT = 500
Row = TypeVar("Row", bound=Table)


def rows_by_name(
    session: Session, table: type[Row], column: InstrumentedAttribute[str], names: Iterable[str]
) -> dict[str, Row]:
    """Return the rows with these names, by name."""
    found: dict[str, Row] = {}
    for some in _chunks(sorted(set(names))):
        for row in session.scalars(select(table).where(column.in_(some))):
            found[getattr(row, column.key)] = row
    return found


def _chunks(names: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(names), NAMES_PER_STATEMENT):
        yield names[start : start + NAMES_PER_STATEMENT]
