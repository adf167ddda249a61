"""Judge what was measured of a version. Pure: no clock, no database, no Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from floe.quality.audit import Audit, Contract, Planned
from floe.quality.expecting import judge_number
from floe.quality.row_counts import judge_row_count
from floe.quality.verdicts import CONTRACT, Finding, Status, Verdict, plural
from floe.spec import format_duration
from floe.spec.checks import (
    AnyCheck,
    FreshnessCheck,
    NotNullCheck,
    RowCountCheck,
    SqlCheck,
    UniqueCheck,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NONE: Mapping[str, Sequence[int]] = MappingProxyType({})


def judge(
    audit: Audit,
    measured: Mapping[str, object],
    *,
    history: Sequence[int],
    day_end: datetime,
    histories: Mapping[str, Sequence[int]] = _NONE,
) -> list[Verdict]:
    """Return the verdict on every check, and on the contract when a column may not be null.

    `history` has the row counts of earlier versions, the newest first. A row_count check with
    a `where` counts something else: `histories` has what it measured before, by its label.
    """
    known = _Known(measured, history, histories, day_end)
    verdicts = [_verdict(one, known) for one in audit.planned]
    if audit.contract is not None:
        verdicts.insert(0, _contract_verdict(audit.contract, known))
    return verdicts


@dataclass(frozen=True)
class _Known:
    """All that a judge goes by."""

    measured: Mapping[str, object]
    history: Sequence[int]
    histories: Mapping[str, Sequence[int]]
    day_end: datetime

    def values(self, names: Sequence[str]) -> list[Any] | None:
        """Return the values of measures, None when one of them is missing."""
        if any(name not in self.measured for name in names):
            return None
        return [self.measured[name] for name in names]


def _verdict(planned: Planned, known: _Known) -> Verdict:
    check = planned.check
    if planned.problem is not None:
        finding = _unmeasured(planned.problem)
    else:
        values = known.values(planned.measures)
        finding = _unmeasured("") if values is None else _find(check, values, known)
    failure: Status = "WARN" if check.on_fail == "warn" else "FAIL"
    status: Status = "PASS" if finding.holds else failure
    return _with_label(finding, check.label, check.kind, status)


def _with_label(finding: Finding, label: str, kind: str, status: Status) -> Verdict:
    return Verdict(
        label,
        kind,
        status,
        finding.failed_rows,
        finding.measured,
        finding.expected,
        finding.message,
    )


def _unmeasured(why: str) -> Finding:
    return Finding(False, None, "a measure", f"was not measured{': ' if why else ''}{why}")


def _find(check: AnyCheck, values: Sequence[Any], known: _Known) -> Finding:
    """Judge one check by its measures, in the order in which the audit asked for them."""
    if isinstance(check, FreshnessCheck):
        return _find_fresh(check, values[0], known.day_end)
    if isinstance(check, SqlCheck):
        return judge_number(check, values[0], values[1] or 0)
    if None in values:
        return _unmeasured("")
    if isinstance(check, RowCountCheck):
        own = known.histories.get(check.label, ()) if check.where else known.history
        return judge_row_count(check, values[0], own)
    return _find_rows(check, values)


def _find_rows(check: AnyCheck, values: Sequence[int]) -> Finding:
    failed = values[0]
    words = f"{plural(failed)} {'violates' if failed == 1 else 'violate'} it" if failed else "holds"
    if failed and isinstance(check, UniqueCheck):
        words = f"{plural(failed)} share {plural(values[1], 'key')}"
    if failed and isinstance(check, NotNullCheck):
        columns = zip(check.columns, values[1:] or values, strict=True)
        words = _null_words(dict(columns))
    return Finding(not failed, failed, "no rows that violate it", words, failed)


def _null_words(nulls: Mapping[str, int]) -> str:
    lacking = [f"'{name}' in {plural(count)}" for name, count in nulls.items() if count]
    return f"no value for {', '.join(lacking)}"


def _contract_verdict(contract: Contract, known: _Known) -> Verdict:
    values = known.values([contract.rows, *contract.nulls.values()])
    if values is None or None in values:
        return _with_label(_unmeasured(""), CONTRACT, CONTRACT, "FAIL")
    failed, nulls = values[0], dict(zip(contract.nulls, values[1:], strict=True))
    words = _null_words(nulls) if failed else "holds"
    expected = f"a value in every row for {', '.join(contract.nulls)}"
    finding = Finding(not failed, failed, expected, words, failed)
    return _with_label(finding, CONTRACT, CONTRACT, "FAIL" if failed else "PASS")


def _find_fresh(check: FreshnessCheck, micros: int | None, day_end: datetime) -> Finding:
    expected = f"at most {format_duration(check.max_age)} before the end of the business date"
    if micros is None:
        return Finding(False, None, expected, f"no row has a value in '{check.column}'")
    newest = _EPOCH + timedelta(microseconds=micros)
    age = day_end.astimezone(UTC) - newest
    shown = newest.isoformat()
    holds = age <= check.max_age
    if age < timedelta(0):
        words = f"the newest value is {shown}, after the end of the business date"
    else:
        words = f"the newest value is {shown}, {format_duration(age)} before {day_end.isoformat()}"
    return Finding(holds, shown, expected, words)
