"""Turn measures into verdicts. Pure: no clock, no database, no Spark."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal

from floe.quality.audit_plan import Audit, Contract, Planned
from floe.spec import format_duration
from floe.spec.checks import (
    AnyCheck,
    Expectation,
    FreshnessCheck,
    NotNullCheck,
    RowCountCheck,
    SqlCheck,
    UniqueCheck,
)

Status = Literal["PASS", "FAIL", "WARN"]
Measured = int | float | str | None
CONTRACT = "contract"
"""Label and kind of the verdict on columns that are declared `nullable: false`."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NONE: Mapping[str, Sequence[int]] = MappingProxyType({})


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Verdict:
    """The result of one check on a version."""

    label: str
    kind: str
    status: Status
    failed_rows: int | None
    measured: Measured
    expected: str
    message: str


@dataclass(frozen=True)
class Finding:
    """The result of a check, before its `on_fail` decides between FAIL and WARN."""

    holds: bool
    measured: Measured
    expected: str
    message: str
    failed_rows: int | None = None


def plural(count: int, noun: str = "row") -> str:
    """Return a count with its noun: 1 row, 1,200 rows."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def judge(
    audit: Audit,
    measured: Mapping[str, object],
    *,
    history: Sequence[int],
    day_end: datetime,
    histories: Mapping[str, Sequence[int]] = _NONE,
) -> list[Verdict]:
    """Return the verdict on every check, and on required columns (the contract).

    `history` has the row counts of earlier versions, newest first. `histories` has the earlier
    counts of row_count checks with a `where`, by label.
    """
    context = _Context(measured, history, histories, day_end)
    verdicts = [_verdict(planned, context) for planned in audit.planned]
    if audit.contract is not None:
        verdicts.insert(0, _contract_verdict(audit.contract, context))
    return verdicts


@dataclass(frozen=True)
class _Context:
    """The measures of a version, and what they are compared with."""

    measured: Mapping[str, object]
    history: Sequence[int]
    histories: Mapping[str, Sequence[int]]
    day_end: datetime

    def values(self, names: Sequence[str]) -> list[Any] | None:
        """Return the values of measures, or None if one is missing."""
        if any(name not in self.measured for name in names):
            return None
        return [self.measured[name] for name in names]


def _verdict(planned: Planned, context: _Context) -> Verdict:
    check = planned.check
    if planned.problem is not None:
        finding = _unmeasured(planned.problem)
    else:
        values = context.values(planned.measures)
        finding = _unmeasured("") if values is None else _judge_check(check, values, context)
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


def _judge_check(check: AnyCheck, values: Sequence[Any], context: _Context) -> Finding:
    """Judge one check by its measures, in the order in which they were planned."""
    if isinstance(check, FreshnessCheck):
        return _judge_freshness(check, values[0], context.day_end)
    if isinstance(check, SqlCheck):
        return judge_query_result(check, values[0], values[1] or 0)
    if None in values:
        return _unmeasured("")
    if isinstance(check, RowCountCheck):
        own = context.histories.get(check.label, ()) if check.where else context.history
        return judge_row_count(check, values[0], own)
    return _judge_rows(check, values)


def _judge_rows(check: AnyCheck, values: Sequence[int]) -> Finding:
    failed = values[0]
    words = f"{plural(failed)} {'violates' if failed == 1 else 'violate'} the check"
    if not failed:
        words = "passed"
    if failed and isinstance(check, UniqueCheck):
        words = f"{plural(failed)} share {plural(values[1], 'key')}"
    if failed and isinstance(check, NotNullCheck):
        columns = zip(check.columns, values[1:] or values, strict=True)
        words = _describe_nulls(dict(columns))
    return Finding(not failed, failed, "no violations", words, failed)


def _describe_nulls(nulls: Mapping[str, int]) -> str:
    return ", ".join(
        f"'{name}' is null in {plural(count)}" for name, count in nulls.items() if count
    )


def _contract_verdict(contract: Contract, context: _Context) -> Verdict:
    values = context.values([contract.rows, *contract.nulls.values()])
    if values is None or None in values:
        return _with_label(_unmeasured(""), CONTRACT, CONTRACT, "FAIL")
    failed, nulls = values[0], dict(zip(contract.nulls, values[1:], strict=True))
    words = _describe_nulls(nulls) if failed else "passed"
    expected = f"no nulls in {', '.join(contract.nulls)}"
    finding = Finding(not failed, failed, expected, words, failed)
    return _with_label(finding, CONTRACT, CONTRACT, "FAIL" if failed else "PASS")


def _judge_freshness(check: FreshnessCheck, micros: int | None, day_end: datetime) -> Finding:
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


def judge_row_count(check: RowCountCheck, count: int, history: Sequence[int]) -> Finding:
    """Compare a row count with its bounds and with earlier counts, newest first."""
    earlier = history[: check.compared_to]
    wrong = [*_outside(check, count), *_jump(check, count, earlier)]
    words = "; ".join(wrong) or f"{plural(count)}{_first(check, earlier)}"
    return Finding(not wrong, count, _expected(check, earlier), words)


def _outside(check: RowCountCheck, count: int) -> list[str]:
    wrong = []
    if check.min is not None and count < check.min:
        wrong.append(f"{plural(count)}, expected at least {check.min:,}")
    if check.max is not None and count > check.max:
        wrong.append(f"{plural(count)}, expected at most {check.max:,}")
    return wrong


def _jump(check: RowCountCheck, count: int, earlier: Sequence[int]) -> list[str]:
    if check.max_change is None or not earlier:
        return []
    mean = sum(earlier) / len(earlier)
    if abs(count - mean) <= check.max_change * mean:
        return []
    change = f"{abs(count - mean) / mean:.1%} off" if mean else "not"
    versions = plural(len(earlier), "version")
    return [f"{plural(count)}, {change} {mean:,.0f}, the mean of the last {versions}"]


def _first(check: RowCountCheck, earlier: Sequence[int]) -> str:
    compares = check.max_change is not None and not earlier
    return "; there is no earlier version to compare with" if compares else ""


def _expected(check: RowCountCheck, earlier: Sequence[int]) -> str:
    parts = []
    if check.min is not None:
        parts.append(f"at least {check.min:,}")
    if check.max is not None:
        parts.append(f"at most {check.max:,}")
    if check.max_change is not None:
        mean = f"the mean {sum(earlier) / len(earlier):,.0f}" if earlier else "the mean"
        parts.append(f"within {check.max_change * 100:g}% of {mean}")
    return " and ".join(parts)


def meets(expectation: Expectation, value: float) -> bool:
    """Tell whether a value meets an expectation. NaN never does."""
    if math.isnan(value):
        return False
    if expectation.high is not None:
        return expectation.low <= value <= expectation.high
    return _COMPARE[expectation.operator](value, expectation.low)


def judge_query_result(check: SqlCheck, value: object, rows: int) -> Finding:
    """Compare the result of a query with its expectation."""
    expected = str(check.expect)
    if rows > 1:
        return Finding(False, None, expected, f"the query returned {plural(rows)}; expected 1 row")
    answer = _as_float(value)
    if answer is None:
        answer_text = "no value" if value is None else f"'{value}', which is not a number"
        return Finding(False, _shown(value), expected, f"the query returned {answer_text}")
    shown = int(answer) if answer.is_integer() else answer
    holds = meets(check.expect, answer)
    words = f"the query returned {shown}" + ("" if holds else f"; expected {expected}")
    return Finding(holds, shown, expected, words, _failed_rows(check.expect, answer, holds))


def counts_failures(expectation: Expectation) -> bool:
    """Tell whether an expectation is `= 0` or `<= 0`: the result counts failures."""
    return expectation.operator in ("=", "<=") and expectation.low == 0


def _failed_rows(expectation: Expectation, answer: float, holds: bool) -> int | None:
    if not counts_failures(expectation) or not answer.is_integer() or answer < 0:
        return None
    return 0 if holds else int(answer)


def _as_float(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _shown(value: object) -> str | None:
    return None if value is None else str(value)
