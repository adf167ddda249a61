"""Measure a version with all checks of its dataset in one query, and judge it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from floe.catalog.checks import list_checks, list_measured, page_results, put_check, record_result
from floe.catalog.version_queries import latest_ready, list_row_counts
from floe.execution.formats.contract import KeepsStatistics, StoredVersion
from floe.execution.spark.queries import measures_of, query
from floe.execution.versions.version_access import format_of, stored_version
from floe.execution.workspace import Workspace
from floe.quality import CONTRACT, ColumnLike, Verdict, judge, plan_audit, sample_query
from floe.spec.checks import AnyCheck, ReferentialCheck, SqlCheck, UniqueCheck

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession
    from sqlalchemy.orm import Session

    from floe.catalog.tables import DatasetVersion, QualityCheckDef

HISTORY = 100
VIEW = "floe_audit"


@dataclass(frozen=True)
class Audited:
    """The result of an audit: the row count, and a verdict per check."""

    rows: int
    verdicts: Sequence[Verdict] = ()
    samples: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    measures: Mapping[str, int] = field(default_factory=dict)
    """Spark's measures of the audit query itself."""

    @property
    def failures(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.status == "FAIL"]

    @property
    def reason(self) -> str:
        """The reason for rejecting the version, in one sentence."""
        return "; ".join(f"{verdict.label}: {verdict.message}" for verdict in self.failures)


def audit_version(
    workspace: Workspace,
    spark: "SparkSession",
    stored: StoredVersion,
    frame: "DataFrame",
    *,
    known: Sequence[ColumnLike] = (),
) -> Audited:
    """Measure and judge a version. Without `known` columns, Spark is asked for them."""
    checks = [_with_text(workspace, check) for check in stored.spec.checks]
    references = _references(workspace, spark, stored, checks)
    columns = _columns(stored, frame, known)
    views = {dataset: f"floe_reference_{n}" for n, dataset in enumerate(references)}
    frames = {
        VIEW: frame,
        **{views[dataset]: reference for dataset, reference in references.items()},
    }
    form = format_of(workspace, stored.dataset)
    audit = plan_audit(
        checks,
        columns,
        view=VIEW,
        references=views,
        statistics=isinstance(form, KeepsStatistics) and form.keeps_statistics,
    )
    asked = query(spark, audit.statement, frames=frames)
    measured = audit.read(row.asDict() for row in asked.collect())
    verdicts = judge(
        audit,
        measured,
        history=_history(workspace, stored),
        histories=_histories(workspace, stored),
        day_end=_day_end(workspace, stored),
    )
    failed = {verdict.label for verdict in verdicts if verdict.status != "PASS"}
    queries = {
        check.label: sample_query(check, VIEW, check.samples, columns=columns, references=views)
        for check in checks
        if check.label in failed
    }
    samples = {label: _fetch(spark, text, frames) for label, text in queries.items() if text}
    keys = {check.label: check.columns for check in checks if isinstance(check, UniqueCheck)}
    verdicts = [_with_key(verdict, keys.get(verdict.label, ()), samples) for verdict in verdicts]
    return Audited(int(measured[audit.row_count]), verdicts, samples, measures_of(asked))


def _with_key(
    verdict: Verdict, keys: Sequence[str], samples: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Verdict:
    """Add an example of a duplicate key to the message."""
    row = next(iter(samples.get(verdict.label, ())), None)
    if not keys or row is None:
        return verdict
    values = {name.lower(): value for name, value in row.items()}
    shown = ", ".join(f"{key} = {values.get(key.lower()) or 'null'}" for key in keys)
    return replace(verdict, message=f"{verdict.message}, such as {shown}")


def broken_contract(problems: Sequence[str]) -> Audited:
    """Return the verdict on data that was not written, because its schema is wrong."""
    message = "; ".join(problems)
    return Audited(0, [Verdict(CONTRACT, CONTRACT, "FAIL", None, None, "", message)])


def record_audit(session: "Session", dataset_id: int, version_id: int, audited: Audited) -> None:
    """Store the verdicts on a version, each with its check."""
    known: dict[str, QualityCheckDef] = {
        check.name: check for check in list_checks(session, dataset_id)
    }
    for verdict in audited.verdicts:
        check = known.get(verdict.label)
        if check is None and verdict.kind == CONTRACT:
            # It comes from the schema, not from a declared check, so it is stored as inactive.
            check = put_check(session, dataset_id, CONTRACT, kind=CONTRACT, active=False)
        if check is None:
            continue
        detail: dict[str, Any] = {"message": verdict.message, "measured": verdict.measured}
        if rows := audited.samples.get(verdict.label):
            detail["samples"] = rows
        record_result(
            session,
            check,
            verdict.status,
            dataset_version_id=version_id,
            failed_rows=verdict.failed_rows,
            detail=detail,
        )


def recorded_audit(session: "Session", version: "DatasetVersion") -> Audited:
    """Return the newest recorded verdict of each check on a version."""
    results = page_results(
        session, version.dataset_id, dataset_version_id=version.dataset_version_id
    )
    newest = {row.name: row for row in reversed(results)}
    verdicts = [
        Verdict(
            name,
            CONTRACT if name == CONTRACT else "",
            row.status,
            row.failed_rows,
            (row.detail_json or {}).get("measured"),
            "",
            (row.detail_json or {}).get("message", ""),
        )
        for name, row in sorted(newest.items())
    ]
    samples = {
        name: row.detail_json["samples"]
        for name, row in newest.items()
        if (row.detail_json or {}).get("samples")
    }
    return Audited(version.row_count or 0, verdicts, samples)


def _with_text(workspace: Workspace, check: AnyCheck) -> AnyCheck:
    if not isinstance(check, SqlCheck):
        return check
    return check.model_copy(update={"sql": workspace.site.read_text(check.sql)})


def _columns(
    stored: StoredVersion, frame: "DataFrame", known: Sequence[ColumnLike]
) -> Sequence[ColumnLike]:
    if stored.spec.columns:
        return stored.spec.columns
    from floe.spec.datasets import Column

    if known:
        # Only names and types: undeclared columns may be null.
        return [Column(name=column.name, type=column.type) for column in known]
    fields = frame.schema.fields
    return [Column(name=column.name, type=column.dataType.simpleString()) for column in fields]


def _references(
    workspace: Workspace, spark: "SparkSession", stored: StoredVersion, checks: Sequence[AnyCheck]
) -> dict[str, "DataFrame"]:
    """Return the datasets that referential checks need, as of the version's date."""
    frames: dict[str, DataFrame] = {}
    for check in checks:
        if not isinstance(check, ReferentialCheck) or check.dataset in frames:
            continue
        dataset_id = workspace.dataset_id(check.dataset)
        with workspace.catalog.reading() as session:
            version = latest_ready(session, dataset_id, until=stored.business_date)
        if version is not None:
            other = stored_version(workspace, check.dataset, version)
            form = format_of(workspace, check.dataset)
            frames[check.dataset] = form.read(workspace.site, spark, other)
    return frames


def _history(workspace: Workspace, stored: StoredVersion) -> list[int]:
    if not any(check.kind == "row_count" for check in stored.spec.checks):
        return []
    dataset_id = workspace.dataset_id(stored.dataset)
    with workspace.catalog.reading() as session:
        return list_row_counts(session, dataset_id, until=stored.business_date, limit=HISTORY)


def _histories(workspace: Workspace, stored: StoredVersion) -> dict[str, list[int]]:
    """Return earlier results of `row_count` checks with `where`, by check."""
    partial = [
        check.label for check in stored.spec.checks if check.kind == "row_count" and check.where
    ]
    if not partial:
        return {}
    dataset_id = workspace.dataset_id(stored.dataset)
    with workspace.catalog.reading() as session:
        return {
            label: list_measured(session, dataset_id, label, limit=HISTORY) for label in partial
        }


def _day_end(workspace: Workspace, stored: StoredVersion) -> datetime:
    zone = ZoneInfo(stored.spec.timezone or workspace.site.spec.timezone)
    return datetime.combine(stored.business_date + timedelta(days=1), time(), zone)


def _fetch(
    spark: "SparkSession", text: str, frames: Mapping[str, "DataFrame"]
) -> list[dict[str, Any]]:
    """Fetch sample rows as text, to be stored with the result."""
    return [
        {name: None if value is None else str(value) for name, value in row.asDict().items()}
        for row in query(spark, text, frames=frames).collect()
    ]
