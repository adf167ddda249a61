"""Rules for checks: their columns exist, and their bounds make sense."""

from collections.abc import Iterator

from floe.spec.checks import (
    AcceptedValuesCheck,
    AnyCheck,
    FreshnessCheck,
    NotNullCheck,
    RangeCheck,
    ReferentialCheck,
    RowCountCheck,
    SqlCheck,
    UniqueCheck,
)
from floe.spec.findings import KeyPath, Problem
from floe.spec.nearby import suggest
from floe.spec.rules.draft import Draft
from floe.spec.rules.files import missing_file


def check_check(draft: Draft, path: KeyPath, dataset: str, check: AnyCheck) -> Iterator[Problem]:
    """Find what is wrong with one check of a dataset."""
    columns = draft.columns(dataset)
    if isinstance(check, NotNullCheck | UniqueCheck | ReferentialCheck):
        for index, name in enumerate(check.columns):
            yield from unknown_column((*path, "columns", index), name, columns)
    if isinstance(check, AcceptedValuesCheck | RangeCheck | FreshnessCheck):
        yield from unknown_column((*path, "column"), check.column, columns)
    if isinstance(check, RangeCheck | RowCountCheck):
        yield from _check_bounds(path, check)
    if isinstance(check, ReferentialCheck):
        yield from _check_referential(draft, path, check)
    if isinstance(check, SqlCheck):
        yield from missing_file(draft, (*path, "sql"), check.sql)


def unknown_column(path: KeyPath, name: str, columns: tuple[str, ...]) -> Iterator[Problem]:
    """A column must be one of the schema, when there is a schema."""
    if columns and name not in columns:
        yield Problem(path, f"no column named '{name}' in the schema", suggest(name, columns))


def _check_bounds(path: KeyPath, check: RangeCheck | RowCountCheck) -> Iterator[Problem]:
    change = check.max_change if isinstance(check, RowCountCheck) else None
    if check.min is None and check.max is None and change is None:
        also = tuple((*path, key) for key in ("min", "max", "max_change"))
        yield Problem(path, "has no bound", "Give it a min or a max.", also=also)
    elif check.min is not None and check.max is not None and _exceeds(check.min, check.max):
        also = ((*path, "max"),)
        message = f"the min {check.min} is more than the max {check.max}"
        yield Problem((*path, "min"), message, "Exchange them.", also=also)


def _exceeds(low: object, high: object) -> bool:
    """Compare numbers as numbers and dates as text; what cannot be compared is not wrong here."""
    if isinstance(low, int | float) and isinstance(high, int | float):
        return low > high
    return isinstance(low, str) and isinstance(high, str) and low > high


def _check_referential(draft: Draft, path: KeyPath, check: ReferentialCheck) -> Iterator[Problem]:
    datasets = draft.names("datasets")
    if check.dataset not in datasets:
        otherwise = "Declare it under datasets."
        yield draft.unknown((*path, "dataset"), "dataset", check.dataset, datasets, otherwise)
        return
    columns = check.to_columns or check.columns
    if len(columns) != len(check.columns):
        message = f"names {len(columns)} columns for {len(check.columns)}"
        yield Problem((*path, "to_columns"), message, "Name as many as in columns.")
    others = draft.columns(check.dataset)
    key = "to_columns" if check.to_columns else "columns"
    for index, name in enumerate(columns):
        if others and name not in others:
            message = f"no column named '{name}' in '{check.dataset}'"
            yield Problem((*path, key, index), message, suggest(name, others))
