"""Checks: rules on the versions of a dataset, and their results."""

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import apply_fields
from floe.catalog.tables import QualityCheckDef, QualityCheckResult

PASS, FAIL, WARN = "PASS", "FAIL", "WARN"
REJECT = "REJECT"


class CheckFields(TypedDict, total=False):
    """The definition of a check."""

    kind: str
    severity: str
    sql_expression: str | None
    expected_result: str | None
    parameters_json: Any
    active: bool


def put_check(
    session: Session, dataset_id: int, name: str, **values: Unpack[CheckFields]
) -> QualityCheckDef:
    """Create a check, or update the existing one of that name."""
    check = session.scalar(
        select(QualityCheckDef).where(
            QualityCheckDef.dataset_id == dataset_id, QualityCheckDef.name == name
        )
    )
    if check is None:
        check = new_check(dataset_id, name, **values)
        session.add(check)
        session.flush()
    else:
        apply_fields(check, values)
    return check


def new_check(dataset_id: int, name: str, **values: Unpack[CheckFields]) -> QualityCheckDef:
    """Build the row of a new check without storing it."""
    values.setdefault("active", True)
    values.setdefault("severity", REJECT)
    return QualityCheckDef(dataset_id=dataset_id, name=name, created_at=clock.now(), **values)


def list_checks(
    session: Session, dataset_id: int, *, after: str = "", limit: int | None = None
) -> Sequence[QualityCheckDef]:
    """Return the active checks of a dataset with names after `after`, sorted by name."""
    of = QualityCheckDef
    return session.scalars(
        select(of)
        .where(of.dataset_id == dataset_id, of.active == True, of.name > after)  # noqa: E712
        .order_by(of.name)
        .limit(limit)
    ).all()


def record_result(
    session: Session,
    check: QualityCheckDef,
    status: str,
    *,
    dataset_version_id: int | None = None,
    run_id: int | None = None,
    failed_rows: int | None = None,
    detail: Any = None,
) -> QualityCheckResult:
    """Store the result of a check on a version."""
    result = QualityCheckResult(
        qdef_id=check.qdef_id,
        dataset_version_id=dataset_version_id,
        run_id=run_id,
        executed_at=clock.now(),
        status=status,
        failed_rows=failed_rows,
        detail_json=detail,
    )
    session.add(result)
    session.flush()
    return result


def page_results(
    session: Session,
    dataset_id: int,
    *,
    dataset_version_id: int | None = None,
    before_id: int | None = None,
    limit: int = 100,
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return check results of a dataset with the check names, newest first."""
    of = QualityCheckResult.__table__.c
    query = (
        select(*of, QualityCheckDef.name, QualityCheckDef.severity)
        .join(QualityCheckDef, QualityCheckDef.qdef_id == of.qdef_id)
        .where(QualityCheckDef.dataset_id == dataset_id)
    )
    if dataset_version_id is not None:
        query = query.where(of.dataset_version_id == dataset_version_id)
    if before_id is not None:
        query = query.where(of.qres_id < before_id)
    return session.execute(query.order_by(of.qres_id.desc()).limit(limit)).all()


def list_measured(session: Session, dataset_id: int, name: str, *, limit: int) -> list[int]:
    """Return what a check measured when it passed before, newest first."""
    query = (
        select(QualityCheckResult.detail_json)
        .join(QualityCheckDef, QualityCheckDef.qdef_id == QualityCheckResult.qdef_id)
        .where(
            QualityCheckDef.dataset_id == dataset_id,
            QualityCheckDef.name == name,
            QualityCheckResult.status == PASS,
        )
        .order_by(QualityCheckResult.qres_id.desc())
        .limit(limit)
    )
    details: list[Any] = list(session.scalars(query))
    measured = [(detail or {}).get("measured") for detail in details]
    return [count for count in measured if isinstance(count, int)]
