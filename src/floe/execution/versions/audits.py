"""Measure a version with all the checks of its dataset, in one statement, and judge it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from floe.catalog.checks import list_checks, list_measured, page_results, put_check, record_result
from floe.catalog.versions import latest_ready, list_row_counts
from floe.execution.formats.contract import KeepsStatistics, VersionPlace
from floe.execution.spark.measuring import measures_of
from floe.execution.spark.queries import query
from floe.execution.versions.places import format_of, place_of
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
    """What an audit found: how many rows there are, and how each check came out."""

    rows: int
    verdicts: Sequence[Verdict] = ()
    samples: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    measures: Mapping[str, int] = field(default_factory=dict)
    """What Spark measured of the audit itself."""

    @property
    def failures(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.status == "FAIL"]

    @property
    def reason(self) -> str:
        """Why the version is rejected, in one sentence."""
        return "; ".join(f"{one.label}: {one.message}" for one in self.failures)


def audit_version(
    workspace: Workspace,
    spark: "SparkSession",
    place: VersionPlace,
    frame: "DataFrame",
    *,
    known: Sequence[ColumnLike] = (),
) -> Audited:
    """Measure and judge a version that nobody reads yet. Spark is asked for columns not known."""
    checks = [_with_text(workspace, check) for check in place.spec.checks]
    references = _references(workspace, spark, place, checks)
    columns = _columns(place, frame, known)
    views = {dataset: f"floe_reference_{n}" for n, dataset in enumerate(references)}
    frames = {VIEW: frame, **{views[dataset]: one for dataset, one in references.items()}}
    form = format_of(workspace, place.dataset)
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
        history=_history(workspace, place),
        histories=_histories(workspace, place),
        day_end=_day_end(workspace, place),
    )
    failed = {verdict.label for verdict in verdicts if verdict.status != "PASS"}
    queries = {
        check.label: sample_query(check, VIEW, check.samples, columns=columns, references=views)
        for check in checks
        if check.label in failed
    }
    samples = {label: _fetch(spark, text, frames) for label, text in queries.items() if text}
    keys = {check.label: check.columns for check in checks if isinstance(check, UniqueCheck)}
    verdicts = [_with_key(one, keys.get(one.label, ()), samples) for one in verdicts]
    return Audited(int(measured[audit.row_count]), verdicts, samples, measures_of(asked))


def _with_key(
    verdict: Verdict, keys: Sequence[str], samples: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Verdict:
    """Name a key that is there more than once."""
    row = next(iter(samples.get(verdict.label, ())), None)
    if not keys or row is None:
        return verdict
    values = {name.lower(): value for name, value in row.items()}
    shown = ", ".join(f"{key} = {values.get(key.lower()) or 'null'}" for key in keys)
    return replace(verdict, message=f"{verdict.message}, such as {shown}")


def broken_contract(problems: Sequence[str]) -> Audited:
    """The verdict on what was never written, because its columns are not those declared."""
    message = "; ".join(problems)
    return Audited(0, [Verdict(CONTRACT, CONTRACT, "FAIL", None, None, "", message)])


def record_audit(session: "Session", dataset_id: int, version_id: int, audited: Audited) -> None:
    """Write the verdicts on a version, each to its check."""
    known: dict[str, QualityCheckDef] = {
        check.name: check for check in list_checks(session, dataset_id)
    }
    for verdict in audited.verdicts:
        check = known.get(verdict.label)
        if check is None and verdict.kind == CONTRACT:
            # Nobody declares it as a check, the schema does: so it is none that is in force.
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
    """Return the newest verdict of each check on a version, as they were written down."""
    found = page_results(session, version.dataset_id, dataset_version_id=version.dataset_version_id)
    newest = {row.name: row for row in reversed(found)}
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
    place: VersionPlace, frame: "DataFrame", known: Sequence[ColumnLike]
) -> Sequence[ColumnLike]:
    if place.spec.columns:
        return place.spec.columns
    from floe.spec.datasets import Column

    if known:
        # Only names and types: what nobody declared may be null.
        return [Column(name=one.name, type=one.type) for one in known]
    fields = frame.schema.fields
    return [Column(name=one.name, type=one.dataType.simpleString()) for one in fields]


def _references(
    workspace: Workspace, spark: "SparkSession", place: VersionPlace, checks: Sequence[AnyCheck]
) -> dict[str, "DataFrame"]:
    """Return the datasets that checks compare with, as of the version's date."""
    frames: dict[str, DataFrame] = {}
    for check in checks:
        if not isinstance(check, ReferentialCheck) or check.dataset in frames:
            continue
        number = workspace.dataset_id(check.dataset)
        with workspace.catalog.reading() as session:
            version = latest_ready(session, number, until=place.business_date)
        if version is not None:
            other = place_of(workspace, check.dataset, version)
            form = format_of(workspace, check.dataset)
            frames[check.dataset] = form.read(workspace.site, spark, other)
    return frames


def _history(workspace: Workspace, place: VersionPlace) -> list[int]:
    if not any(check.kind == "row_count" for check in place.spec.checks):
        return []
    number = workspace.dataset_id(place.dataset)
    with workspace.catalog.reading() as session:
        return list_row_counts(session, number, until=place.business_date, limit=HISTORY)


def _histories(workspace: Workspace, place: VersionPlace) -> dict[str, list[int]]:
    """What row counts of a part of the rows came to before: no version remembers those."""
    partial = [
        check.label for check in place.spec.checks if check.kind == "row_count" and check.where
    ]
    if not partial:
        return {}
    number = workspace.dataset_id(place.dataset)
    with workspace.catalog.reading() as session:
        return {label: list_measured(session, number, label, limit=HISTORY) for label in partial}


def _day_end(workspace: Workspace, place: VersionPlace) -> datetime:
    zone = ZoneInfo(place.spec.timezone or workspace.site.spec.timezone)
    return datetime.combine(place.business_date + timedelta(days=1), time(), zone)


def _fetch(
    spark: "SparkSession", text: str, frames: Mapping[str, "DataFrame"]
) -> list[dict[str, Any]]:
    """Fetch failing rows as they can be kept. Where all is well none are asked for."""
    return [
        {name: None if value is None else str(value) for name, value in row.asDict().items()}
        for row in query(spark, text, frames=frames).collect()
    ]
