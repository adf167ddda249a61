"""The change log: written in commit order without gaps, read from a cursor."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.stores import store_of
from floe.catalog.tables import Change, ChangeCursor, ChangeHead

HEAD_ID = 1


@dataclass(frozen=True)
class NewChange:
    """A change that has no position in the log yet."""

    kind: str
    dataset_id: int | None = None
    dataset_version_id: int | None = None
    process_id: int | None = None
    run_id: int | None = None
    business_date: date | None = None
    partition_key: str | None = None
    detail: Any = None


def record_change(session: Session, change: NewChange) -> None:
    """Queue a change; it gets its position just before the commit."""
    session.info.setdefault("changes", []).append(change)


def write_pending_changes(session: Session) -> None:
    """Write the queued changes with their positions.

    The row of CHANGE_HEAD stays locked until the commit, so positions follow the commit order
    and a rollback leaves no gap. It is locked last, to hold the lock only briefly.
    """
    pending: list[NewChange] = session.info.pop("changes", [])
    if not pending:
        return
    session.flush()
    first = _take_positions(session, len(pending))
    now = clock.now()
    rows = [_row(change, first + index, now) for index, change in enumerate(pending)]
    session.execute(insert(Change), rows)


def _take_positions(session: Session, count: int) -> int:
    session.execute(
        update(ChangeHead)
        .where(ChangeHead.head_id == HEAD_ID)
        .values(last_position=ChangeHead.last_position + count)
    )
    return last_position(session) - count + 1


def _row(change: NewChange, position: int, occurred_at: datetime) -> dict[str, Any]:
    row = {field.name: getattr(change, field.name) for field in fields(change)}
    row["detail_json"] = row.pop("detail")
    return {**row, "position": position, "occurred_at": occurred_at}


def last_position(session: Session) -> int:
    """Return the position of the newest change, or 0 if there are no changes."""
    return session.scalars(
        select(ChangeHead.last_position).where(ChangeHead.head_id == HEAD_ID)
    ).one()


def list_changes(session: Session, after: int, limit: int = 1000) -> Sequence[Change]:
    """Return the changes after a position, oldest first."""
    return session.scalars(
        select(Change).where(Change.position > after).order_by(Change.position).limit(limit)
    ).all()


def read_cursor(session: Session, reader: str) -> int:
    """Return the last position that a reader has processed; 0 for a new reader."""
    cursor = session.get(ChangeCursor, reader)
    return cursor.position if cursor else 0


def move_cursor(session: Session, reader: str, position: int) -> None:
    """Store the last position that a reader has processed; it never moves back."""
    start = {"reader": reader, "change_position": 0, "updated_at": clock.now()}
    store_of(session).upsert(session, ChangeCursor, [start], key=("reader",), update=())
    session.execute(
        update(ChangeCursor)
        .where(ChangeCursor.reader == reader, ChangeCursor.position < position)
        .values(position=position, updated_at=clock.now())
    )
