"""Hold what is about to be written against the schema that its dataset declares. Pure."""

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
"""Types whose every value has its place in the others: those are cast, not refused."""


class ContractBrokenError(FloeError):
    """What a process makes is not what its output's schema says."""

    def __init__(self, dataset: str, problems: Sequence[str], consumers: Sequence[str]) -> None:
        self.problems = tuple(problems)
        listed = "; ".join(problems)
        read = f" Read by: {', '.join(consumers)}." if consumers else ""
        super().__init__(
            f"The schema of '{dataset}' is broken: {listed}.{read} "
            "Correct the process, or change the schema in floe.yaml."
        )


@dataclass(frozen=True)
class Fit:
    """How the columns of a frame meet a contract."""

    columns: tuple[tuple[str, str], ...]
    """The columns to write with their types, those of the contract first."""
    casts: tuple[str, ...] = ()
    """The columns that have to be cast to a wider type."""
    added: tuple[str, ...] = ()
    """The columns that the contract does not know."""
    problems: tuple[str, ...] = ()


def fit_columns(found: Sequence[tuple[str, str]], declared: Sequence[Column]) -> Fit:
    """Compare what is there with what is declared; without a declaration everything fits."""
    by_name = {name.lower(): (name, kind) for name, kind in found}
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


def is_lossless(found: str, wanted: str) -> bool:
    """Tell whether a cast from the one type to the other can lose nothing."""
    if wanted in WIDENINGS.get(found, ()):
        return True
    if not (found.startswith("decimal(") and wanted.startswith("decimal(")):
        return False
    (old, old_scale), (new, new_scale) = _digits(found), _digits(wanted)
    return new_scale >= old_scale and new - new_scale >= old - old_scale


def _digits(kind: str) -> tuple[int, int]:
    precision, scale = kind.removeprefix("decimal(").rstrip(")").split(",")
    return int(precision), int(scale)
