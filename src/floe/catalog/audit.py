"""The audit log: who changed what, with the values before and after."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.tables import AuditLog

LONGEST_KEY = 600


def record_audit(
    session: Session,
    actor: str,
    action: str,
    object_type: str,
    object_key: str,
    *,
    before: Any = None,
    after: Any = None,
    reason: str | None = None,
) -> None:
    """Write that somebody changed something, in the transaction that changes it."""
    session.add(
        AuditLog(
            occurred_at=clock.now(),
            actor=actor,
            action=action,
            object_type=object_type,
            object_key=object_key,
            before_json=before,
            after_json=after,
            reason=reason,
        )
    )


@dataclass(frozen=True)
class Deed:
    """What was done to one thing."""

    action: str
    object_type: str
    object_key: str
    before: Any = None
    after: Any = None
    reason: str | None = None


def record_audits(session: Session, actor: str, deeds: Iterable[Deed]) -> None:
    """Write that somebody changed many things at once, in one statement."""
    now = clock.now()
    rows = [
        {
            "occurred_at": now,
            "actor": actor,
            "action": deed.action,
            "object_type": deed.object_type,
            "object_key": deed.object_key,
            "before_json": deed.before,
            "after_json": deed.after,
            "reason": deed.reason,
        }
        for deed in deeds
    ]
    if rows:
        session.execute(insert(AuditLog), rows)


def list_audit(
    session: Session,
    *,
    object_type: str | None = None,
    object_key: str | None = None,
    before_id: int | None = None,
    limit: int = 100,
) -> Sequence[AuditLog]:
    """Return entries, the newest first, from before one on."""
    query = select(AuditLog)
    if object_type is not None:
        query = query.where(AuditLog.object_type == object_type)
    if object_key is not None:
        query = query.where(AuditLog.object_key == object_key)
    if before_id is not None:
        query = query.where(AuditLog.audit_id < before_id)
    return session.scalars(query.order_by(AuditLog.audit_id.desc()).limit(limit)).all()
