"""Plan how a version is measured: all its checks in one statement, in as few scans as possible.

Pure: the statement is text, whoever speaks Spark runs it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from floe.quality.columns import ColumnLike, Columns
from floe.quality.errors import UnusableCheckError, WrongPartError
from floe.quality.quoting import quote_column, quote_name
from floe.quality.sources import TIMES, doubles, orphans, rows_of, select
from floe.quality.user_sql import place_query, read_condition
from floe.quality.violations import BOUNDS, any_null, proof_of, violation
from floe.spec.checks import (
    AnyCheck,
    FreshnessCheck,
    NotNullCheck,
    ReferentialCheck,
    RowCountCheck,
    SqlCheck,
    UniqueCheck,
)


@dataclass(frozen=True)
class Planned:
    """A check and the measures that decide it, or the reason why there are none."""

    check: AnyCheck
    measures: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True)
class Contract:
    """The columns that may not be null, each with the measure of its nulls."""

    rows: str
    """The measure of the rows that lack any of them."""
    nulls: Mapping[str, str]


@dataclass(frozen=True)
class Audit:
    """One statement with a column for every measure: m0, m1, … Each scan answers with a row."""

    statement: str
    row_count: str
    """The measure of all rows."""
    planned: tuple[Planned, ...]
    contract: Contract | None

    def read(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Put the rows together: a measure is in the row of its scan, and null in the others."""
        measured: dict[str, Any] = {}
        for row in rows:
            for name, value in row.items():
                if value is not None or name not in measured:
                    measured[name] = value
        return measured


def plan_audit(
    checks: Iterable[AnyCheck],
    columns: Iterable[ColumnLike],
    *,
    view: str,
    references: Mapping[str, str],
    statistics: bool = False,
) -> Audit:
    """Plan the one statement that measures all checks of a version.

    The version is what `view` shows. `references` says under which name each dataset that
    referential checks speak of can be read. With `statistics` its files are known to be left out
    where they cannot hold what a condition looks for.
    """
    plan = _Plan(quote_name(view), Columns(columns), references, statistics)
    total = plan.measure(plan.view, "count(*)")
    contract = _plan_contract(plan)
    planned = tuple(_plan_check(plan, check) for check in checks)
    return Audit(plan.statement(), total, planned, contract)


@dataclass
class _Plan:
    """What is to be measured, gathered by the source of its rows: one source is one scan."""

    view: str
    columns: Columns
    references: Mapping[str, str]
    statistics: bool = False
    _scans: dict[str, dict[str, str]] = field(default_factory=dict)
    # Conditions that the files' statistics may prove to hold for no row, by what proves it.
    _provable: dict[str, list[str]] = field(default_factory=dict)

    def measure(self, source: str, expression: str) -> str:
        """Ask for an aggregate over a source; who asks for the same gets the same measure."""
        scan = self._scans.setdefault(source, {})
        if expression not in scan:
            scan[expression] = f"m{sum(map(len, self._scans.values()))}"
        return scan[expression]

    def count(self, condition: str | None, where: str | None) -> str:
        """Count the rows that meet a condition, of those that `where` lets through."""
        source, limit = self.limited(where)
        conditions = [f"({part})" for part in (limit, condition) if part]
        whole = f"count_if({' AND '.join(conditions)})" if conditions else "count(*)"
        return self.measure(source, whole)

    def count_violations(self, condition: str, where: str | None, proof: str | None) -> str:
        """Count the rows that violate a check; those of a file need not be read to find none.

        What is proved in one way has a scan of its own, because a file is left out only if the
        proof holds for all that its scan looks for.
        """
        if proof is None or where is not None or not self.statistics:
            return self.count(condition, where)
        conditions = self._provable.setdefault(proof, [])
        if condition not in conditions:
            conditions.append(condition)
        return self.measure(proof, f"count_if({condition})")

    def limited(self, where: str | None) -> tuple[str, str | None]:
        """Return a source of rows, and what is still to be asked of each to meet `where`."""
        if where is None:
            return self.view, None
        condition = read_condition(where)
        if condition.has_query:  # Spark takes no query within an aggregate
            return rows_of(self.view, where), None
        # On a line of its own: what a user writes may end in a comment.
        return self.view, f"\n{condition.text}\n"

    def statement(self) -> str:
        names = [name for scan in self._scans.values() for name in scan.values()]
        # Below each other, and not side by side: to join them would cost more than to count.
        return "\nUNION ALL ".join(
            select(self._measures(scan, names), *self._from(source))
            for source, scan in self._scans.items()
        )

    def _measures(self, scan: Mapping[str, str], names: Iterable[str]) -> str:
        own = {name: what for what, name in scan.items()}
        return ", ".join(f"{own.get(name, 'NULL')} AS {name}" for name in names)

    def _from(self, source: str) -> tuple[str, ...]:
        conditions = self._provable.get(source)
        if conditions is None:
            return (source,)
        return self.view, "WHERE", " OR ".join(f"({condition})" for condition in conditions)


def _plan_contract(plan: _Plan) -> Contract | None:
    required = plan.columns.required()
    if not required:
        return None
    nulls = {name: plan.count_violations(any_null([name]), None, BOUNDS) for name in required}
    return Contract(plan.count_violations(any_null(required), None, BOUNDS), nulls)


def _plan_check(plan: _Plan, check: AnyCheck) -> Planned:
    missing = plan.columns.missing(_columns_of(check))
    if missing:
        return Planned(check, problem=f"the version has no column {_listed(missing)}")
    if isinstance(check, ReferentialCheck) and check.dataset not in plan.references:
        return Planned(check, problem=f"there is no version of {check.dataset} to compare with")
    try:
        return Planned(check, tuple(_measures(plan, check)))
    except WrongPartError as error:
        raise UnusableCheckError(check.label, str(error)) from None


def _columns_of(check: AnyCheck) -> Sequence[str]:
    if isinstance(check, RowCountCheck | SqlCheck):
        return ()
    if isinstance(check, NotNullCheck | UniqueCheck | ReferentialCheck):
        return check.columns
    return (check.column,)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _measures(plan: _Plan, check: AnyCheck) -> list[str]:
    """Ask for what the judge of this kind of check wants to know, in the order it expects."""
    if isinstance(check, RowCountCheck):
        return [plan.count(None, check.where)]
    if isinstance(check, FreshnessCheck):
        return [_newest(plan, check)]
    if isinstance(check, UniqueCheck):
        source = doubles(check, plan.view)
        counts = (f"coalesce(sum({TIMES}), 0)", "count(*)")
        return [plan.measure(source, count) for count in counts]
    if isinstance(check, ReferentialCheck):
        reference = quote_name(plan.references[check.dataset])
        return [plan.measure(orphans(check, plan.view, reference), "count(*)")]
    if isinstance(check, SqlCheck):
        query = place_query(check.sql, rows_of(plan.view, check.where))
        source = f"(\n{query}\n) AS answer(number)"
        return [plan.measure(source, what) for what in ("max(number)", "count(*)")]
    proof = proof_of(check, plan.columns)
    rows = [plan.count_violations(violation(check, plan.columns), check.where, proof)]
    if isinstance(check, NotNullCheck) and len(check.columns) > 1:
        rows += [
            plan.count_violations(any_null([name]), check.where, proof) for name in check.columns
        ]
    return rows


def _newest(plan: _Plan, check: FreshnessCheck) -> str:
    # As a number: a moment would come back in whatever zone the client thinks it is in.
    moment = f"try_cast({quote_column(check.column)} AS TIMESTAMP)"
    source, limit = plan.limited(check.where)
    kept = f" FILTER (WHERE {limit})" if limit else ""
    return plan.measure(source, f"unix_micros(max({moment}){kept})")
