"""Judge the one number that the query of a check gave. Pure."""

import math
import operator
from collections.abc import Callable

from floe.quality.verdicts import Finding, plural
from floe.spec.checks import SqlCheck
from floe.spec.expectations import Expectation

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def meets(expectation: Expectation, number: float) -> bool:
    """Tell whether a number is what it must be. NaN is nothing that anyone expects."""
    if math.isnan(number):
        return False
    if expectation.high is not None:
        return expectation.low <= number <= expectation.high
    return _COMPARE[expectation.operator](number, expectation.low)


def judge_number(check: SqlCheck, value: object, rows: int) -> Finding:
    """Hold the answer of a query against what is expected of it."""
    expected = str(check.expect)
    if rows > 1:
        return Finding(False, None, expected, f"the query gave {plural(rows)} instead of one")
    number = _number(value)
    if number is None:
        gave = "nothing" if value is None else f"'{value}', which is no number"
        return Finding(False, _shown(value), expected, f"the query gave {gave}")
    shown = int(number) if number.is_integer() else number
    holds = meets(check.expect, number)
    words = f"the query gave {shown}" + ("" if holds else f", expected is {expected}")
    return Finding(holds, shown, expected, words, _failed_rows(check.expect, number, holds))


def counts_failures(expectation: Expectation) -> bool:
    """Tell whether the number can only be a count of what is wrong: none of it is expected."""
    return expectation.operator in ("=", "<=") and expectation.low == 0


def _failed_rows(expectation: Expectation, number: float, holds: bool) -> int | None:
    if not counts_failures(expectation) or not number.is_integer() or number < 0:
        return None
    return 0 if holds else int(number)


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _shown(value: object) -> str | None:
    return None if value is None else str(value)
