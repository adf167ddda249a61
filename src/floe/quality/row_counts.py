"""Judge whether a version has a plausible number of rows. Pure."""

from collections.abc import Sequence

from floe.quality.verdicts import Finding, plural
from floe.spec.checks import RowCountCheck


def judge_row_count(check: RowCountCheck, count: int, history: Sequence[int]) -> Finding:
    """Hold a count against its bounds, and against earlier counts, the newest of which is first."""
    earlier = history[: check.compared_to]
    wrong = [*_outside(check, count), *_jump(check, count, earlier)]
    words = "; ".join(wrong) or f"{plural(count)}{_first(check, earlier)}"
    return Finding(not wrong, count, _expected(check, earlier), words)


def _outside(check: RowCountCheck, count: int) -> list[str]:
    wrong = []
    if check.min is not None and count < check.min:
        wrong.append(f"{plural(count)} are fewer than {check.min:,}")
    if check.max is not None and count > check.max:
        wrong.append(f"{plural(count)} are more than {check.max:,}")
    return wrong


def _jump(check: RowCountCheck, count: int, earlier: Sequence[int]) -> list[str]:
    if check.max_change is None or not earlier:
        return []
    mean = sum(earlier) / len(earlier)
    if abs(count - mean) <= check.max_change * mean:
        return []
    change = f"{abs(count - mean) / mean:.1%} away from" if mean else "not"
    versions = plural(len(earlier), "version")
    return [f"{plural(count)} are {change} {mean:,.0f}, the mean of the last {versions}"]


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
