"""The audit log: who changed what, with the values before and after."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.tables import AuditLog


@dataclass
class Difference:
    """The fields of an object that changed, with their values before and after."""

    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.after)

    def add(self, name: str, before: Any, after: Any) -> None:
        self.before[name], self.after[name] = before, after

    def update(self, other: "Difference") -> None:
        self.before.update(other.before)
        self.after.update(other.after)


def change_fields(row: Any, values: Mapping[str, Any]) -> Difference:
    """Set the fields of a row that differ and `updated_at`; return what changed."""
    difference = Difference()
    for name, value in values.items():
        if (before := getattr(row, name)) != value:
            difference.add(name, before, value)
            setattr(row, name, value)
    if difference:
        row.updated_at = clock.now()
    return difference


def apply_fields(row: Any, values: Mapping[str, Any]) -> list[str]:
    """Set the fields of a row that differ; return only their names."""
    return list(change_fields(row, values).after)


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without those that are None."""
    return {name: value for name, value in values.items() if value is not None}


MAX_KEY_LENGTH = 600


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
    """Add an audit entry in the same transaction as the change."""
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
class AuditRecord:
    """An action on one object, with the values before and after."""

    action: str
    object_type: str
    object_key: str
    before: Any = None
    after: Any = None
    reason: str | None = None


def record_audits(session: Session, actor: str, records: Iterable[AuditRecord]) -> None:
    """Add many audit entries in one statement."""
    now = clock.now()
    rows = [
        {
            "occurred_at": now,
            "actor": actor,
            "action": record.action,
            "object_type": record.object_type,
            "object_key": record.object_key,
            "before_json": record.before,
            "after_json": record.after,
            "reason": record.reason,
        }
        for record in records
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
    """Return entries older than `before_id`, newest first."""
    query = select(AuditLog)
    if object_type is not None:
        query = query.where(AuditLog.object_type == object_type)
    if object_key is not None:
        query = query.where(AuditLog.object_key == object_key)
    if before_id is not None:
        query = query.where(AuditLog.audit_id < before_id)
    return session.scalars(query.order_by(AuditLog.audit_id.desc()).limit(limit)).all()
