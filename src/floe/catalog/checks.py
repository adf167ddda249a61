"""Checks: rules on the versions of a dataset, and their verdicts."""

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.rows import apply_fields
from floe.catalog.tables import QualityCheckDef, QualityCheckResult

PASS, FAIL, WARN = "PASS", "FAIL", "WARN"
REJECT = "REJECT"


class CheckFields(TypedDict, total=False):
    """What a check says."""

    kind: str
    severity: str
    sql_expression: str | None
    expected_result: str | None
    parameters_json: Any
    active: bool


def put_check(
    session: Session, dataset_id: int, name: str, **values: Unpack[CheckFields]
) -> QualityCheckDef:
    """Define a check under its name, or change what differs of it."""
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
    """Build a check's row without writing it."""
    values.setdefault("active", True)
    values.setdefault("severity", REJECT)
    return QualityCheckDef(dataset_id=dataset_id, name=name, created_at=clock.now(), **values)


def list_checks(
    session: Session, dataset_id: int, *, after: str = "", limit: int | None = None
) -> Sequence[QualityCheckDef]:
    """Return the checks of a dataset that are in force by name, from after one on."""
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
    """Write the verdict of a check on a version."""
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


def list_results(
    session: Session, dataset_id: int, *, dataset_version_id: int | None = None, limit: int = 100
) -> Sequence[QualityCheckResult]:
    """Return the newest verdicts on a dataset, or on one version of it."""
    query = (
        select(QualityCheckResult)
        .join(QualityCheckDef, QualityCheckDef.qdef_id == QualityCheckResult.qdef_id)
        .where(QualityCheckDef.dataset_id == dataset_id)
    )
    if dataset_version_id is not None:
        query = query.where(QualityCheckResult.dataset_version_id == dataset_version_id)
    return session.scalars(query.order_by(QualityCheckResult.qres_id.desc()).limit(limit)).all()


def page_results(
    session: Session,
    dataset_id: int,
    *,
    dataset_version_id: int | None = None,
    before_id: int | None = None,
    limit: int = 100,
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return verdicts on a dataset with the names of their checks, the newest first."""
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
    """Return what a check measured on good versions before, the newest first."""
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
