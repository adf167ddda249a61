"""Plan one SQL statement that runs all checks in as few scans as possible.

Pure: the caller runs the statement.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from floe.quality.check_sql import (
    OCCURRENCES,
    CheckSqlError,
    UnusableCheckError,
    duplicate_keys,
    fill_query,
    orphans,
    parse_condition,
    quote_column,
    quote_name,
    rows_of,
    select,
)
from floe.quality.violations import BOUNDS, ColumnLike, Columns, any_null, proof_of, violation
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
    """A check with its measures, or the reason why it cannot be measured."""

    check: AnyCheck
    measures: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True)
class Contract:
    """The columns that may not be null, with the measures of their nulls."""

    rows: str
    """The measure of the rows with a null in any of them."""
    nulls: Mapping[str, str]


@dataclass(frozen=True)
class Audit:
    """One statement with a column per measure: m0, m1, … Each scan returns a row."""

    statement: str
    row_count: str
    """The measure of all rows."""
    planned: tuple[Planned, ...]
    contract: Contract | None

    def read(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Merge the rows: a measure is in the row of its scan, and null in the others."""
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

    `view` is the view of the version. `references` maps the datasets of referential checks to
    their views. With `statistics`, Spark can skip files by their statistics.
    """
    plan = _Plan(quote_name(view), Columns(columns), references, statistics)
    total = plan.measure(plan.view, "count(*)")
    contract = _plan_contract(plan)
    planned = tuple(_plan_check(plan, check) for check in checks)
    return Audit(plan.statement(), total, planned, contract)


@dataclass
class _Plan:
    """The measures, grouped by the source of their rows. Each source is one scan."""

    view: str
    columns: Columns
    references: Mapping[str, str]
    statistics: bool = False
    _scans: dict[str, dict[str, str]] = field(default_factory=dict)
    # Conditions that file statistics can prove to match no row, by kind of statistics.
    _provable: dict[str, list[str]] = field(default_factory=dict)

    def measure(self, source: str, expression: str) -> str:
        """Add an aggregate over a source; the same aggregate is measured once."""
        scan = self._scans.setdefault(source, {})
        if expression not in scan:
            scan[expression] = f"m{sum(map(len, self._scans.values()))}"
        return scan[expression]

    def count(self, condition: str | None, where: str | None) -> str:
        """Count the rows that meet a condition, among those that meet `where`."""
        source, limit = self.limited(where)
        conditions = [f"({part})" for part in (limit, condition) if part]
        whole = f"count_if({' AND '.join(conditions)})" if conditions else "count(*)"
        return self.measure(source, whole)

    def count_violations(self, condition: str, where: str | None, proof: str | None) -> str:
        """Count the rows that violate a check, in a scan that can skip files if possible.

        Each kind of statistics has its own scan, because a file is skipped only if its statistics
        rule out every condition of the scan.
        """
        if proof is None or where is not None or not self.statistics:
            return self.count(condition, where)
        conditions = self._provable.setdefault(proof, [])
        if condition not in conditions:
            conditions.append(condition)
        return self.measure(proof, f"count_if({condition})")

    def limited(self, where: str | None) -> tuple[str, str | None]:
        """Return a source of rows, and the part of `where` that is left to apply to them."""
        if where is None:
            return self.view, None
        condition = parse_condition(where)
        if condition.has_query:  # Spark does not allow a subquery in an aggregate
            return rows_of(self.view, where), None
        # On its own line, because the condition may end in a comment.
        return self.view, f"\n{condition.text}\n"

    def statement(self) -> str:
        names = [name for scan in self._scans.values() for name in scan.values()]
        # A union, because joining the scans would cost more than counting.
        return "\nUNION ALL ".join(
            select(self._measures(scan, names), *self._from(source))
            for source, scan in self._scans.items()
        )

    def _measures(self, scan: Mapping[str, str], names: Iterable[str]) -> str:
        own = {name: expression for expression, name in scan.items()}
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
        return Planned(check, problem=f"the version has no column {_quoted_list(missing)}")
    if isinstance(check, ReferentialCheck) and check.dataset not in plan.references:
        return Planned(check, problem=f"there is no version of {check.dataset} to compare with")
    try:
        return Planned(check, tuple(_measures(plan, check)))
    except CheckSqlError as error:
        raise UnusableCheckError(check.label, str(error)) from None


def _columns_of(check: AnyCheck) -> Sequence[str]:
    if isinstance(check, RowCountCheck | SqlCheck):
        return ()
    if isinstance(check, NotNullCheck | UniqueCheck | ReferentialCheck):
        return check.columns
    return (check.column,)


def _quoted_list(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _measures(plan: _Plan, check: AnyCheck) -> list[str]:
    """Add the measures of a check, in the order in which the judge reads them."""
    if isinstance(check, RowCountCheck):
        return [plan.count(None, check.where)]
    if isinstance(check, FreshnessCheck):
        return [_newest(plan, check)]
    if isinstance(check, UniqueCheck):
        source = duplicate_keys(check, plan.view)
        counts = (f"coalesce(sum({OCCURRENCES}), 0)", "count(*)")
        return [plan.measure(source, count) for count in counts]
    if isinstance(check, ReferentialCheck):
        reference = quote_name(plan.references[check.dataset])
        return [plan.measure(orphans(check, plan.view, reference), "count(*)")]
    if isinstance(check, SqlCheck):
        query = fill_query(check.sql, rows_of(plan.view, check.where))
        source = f"(\n{query}\n) AS answer(number)"
        return [plan.measure(source, column) for column in ("max(number)", "count(*)")]
    proof = proof_of(check, plan.columns)
    rows = [plan.count_violations(violation(check, plan.columns), check.where, proof)]
    if isinstance(check, NotNullCheck) and len(check.columns) > 1:
        rows += [
            plan.count_violations(any_null([name]), check.where, proof) for name in check.columns
        ]
    return rows


def _newest(plan: _Plan, check: FreshnessCheck) -> str:
    # As a number, because a timestamp would be converted to the time zone of the client.
    timestamp = f"try_cast({quote_column(check.column)} AS TIMESTAMP)"
    source, limit = plan.limited(check.where)
    kept = f" FILTER (WHERE {limit})" if limit else ""
    return plan.measure(source, f"unix_micros(max({timestamp}){kept})")
