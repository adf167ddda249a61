"""State of a project's registration, and helpers to load rows and store SLAs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute, Session

from floe import clock
from floe.catalog.audit import MAX_KEY_LENGTH, AuditRecord, Difference, change_fields
from floe.catalog.projects.report import Report
from floe.catalog.slas import SlaFields
from floe.catalog.tables import Project, Sla, Table
from floe.spec import ProjectSpec
from floe.spec.identity import DatasetId, floe_process


@dataclass(frozen=True)
class Scope:
    """A project to register, its lake, the actor, and the changes so far."""

    session: Session
    spec: ProjectSpec
    project: Project
    lake: str
    actor: str | None
    report: Report
    sql: Mapping[str, str] = field(default_factory=dict)
    audit_records: list[AuditRecord] = field(default_factory=list)

    def full_name(self, dataset: str) -> str:
        return DatasetId(self.lake, dataset).full_name

    def audit(self, action: str, kind: str, key: str, change: Difference) -> None:
        """Collect a change for the audit log."""
        self.audit_records.append(
            AuditRecord(
                f"{kind}.{action}",
                kind.upper(),
                key[:MAX_KEY_LENGTH],
                change.before or None,
                change.after,
            )
        )

    def process_key(self, process: str) -> str:
        return floe_process(self.project.name, process).key


NAMES_PER_STATEMENT = 500

Row = TypeVar("Row", bound=Table)


def rows_by_name(
    session: Session, table: type[Row], column: InstrumentedAttribute[str], names: Iterable[str]
) -> dict[str, Row]:
    """Load the rows with these names, by name."""
    rows: dict[str, Row] = {}
    for some in _chunks(sorted(set(names))):
        for row in session.scalars(select(table).where(column.in_(some))):
            rows[getattr(row, column.key)] = row
    return rows


def _chunks(names: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(names), NAMES_PER_STATEMENT):
        yield names[start : start + NAMES_PER_STATEMENT]


def put_slas(scope: Scope, slas: Mapping[str, SlaFields | None]) -> dict[str, int]:
    """Store SLAs by name; return their ids by name."""
    wanted = {name: fields for name, fields in slas.items() if fields is not None}
    rows = rows_by_name(scope.session, Sla, Sla.name, wanted)
    for name, fields in wanted.items():
        if name not in rows:
            # A new SLA is audited with the dataset or process that declares it.
            rows[name] = Sla(name=name, created_at=clock.now(), **fields)
            scope.session.add(rows[name])
        elif change := change_fields(rows[name], fields):
            scope.audit("update", "sla", name, change)
    scope.session.flush()
    return {name: row.sla_id for name, row in rows.items()}
