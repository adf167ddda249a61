"""Compare a frame's columns with the declared schema. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass

from floe.errors import FloeError
from floe.spec.datasets import Column

WIDENINGS = {
    "tinyint": ("smallint", "int", "bigint"),
    "smallint": ("int", "bigint"),
    "int": ("bigint",),
    "float": ("double",),
}
"""Types that can be cast without loss to the listed wider types."""


class ContractBrokenError(FloeError):
    """The data does not match the declared schema."""

    def __init__(self, dataset: str, problems: Sequence[str], consumers: Sequence[str]) -> None:
        self.problems = tuple(problems)
        listed = "; ".join(problems)
        read = f" Read by: {', '.join(consumers)}." if consumers else ""
        super().__init__(
            f"The data does not match the schema of '{dataset}': {listed}.{read} "
            "Correct the process, or change the schema in floe.yaml."
        )


@dataclass(frozen=True)
class Fit:
    """How the columns of a frame match a declared schema."""

    columns: tuple[tuple[str, str], ...]
    """The columns to write with their types, declared ones first."""
    casts: tuple[str, ...] = ()
    """The columns to cast or rename."""
    added: tuple[str, ...] = ()
    """The columns that are not declared."""
    problems: tuple[str, ...] = ()


def fit_columns(actual: Sequence[tuple[str, str]], declared: Sequence[Column]) -> Fit:
    """Compare actual with declared columns; without a declaration everything fits."""
    by_name = {name.lower(): (name, kind) for name, kind in actual}
    problems, casts, columns = [], [], []
    for column in declared:
        has = by_name.pop(column.name.lower(), None)
        if has is None:
            problems.append(f"column '{column.name}' ({column.type}) is missing")
            continue
        columns.append((column.name, column.type))
        if has[1] != column.type and not is_lossless(has[1], column.type):
            problems.append(f"column '{column.name}' is {has[1]} instead of {column.type}")
        elif has != (column.name, column.type):
            casts.append(column.name)
    extra = list(by_name.values())
    added = tuple(name for name, _ in extra) if declared else ()
    return Fit((*columns, *extra), tuple(casts), added, tuple(problems))


def is_lossless(actual: str, wanted: str) -> bool:
    """Tell whether a cast between two types cannot lose information."""
    if wanted in WIDENINGS.get(actual, ()):
        return True
    if not (actual.startswith("decimal(") and wanted.startswith("decimal(")):
        return False
    (old, old_scale), (new, new_scale) = _digits(actual), _digits(wanted)
    return new_scale >= old_scale and new - new_scale >= old - old_scale


def _digits(kind: str) -> tuple[int, int]:
    precision, scale = kind.removeprefix("decimal(").rstrip(")").split(",")
    return int(precision), int(scale)
