"""Load the values of dbt seeds as typed parameters, and infer types that hold them.

dbt-spark writes the values of a seed into the text of its statement: NULL becomes 'None', quotes
are not escaped, and every number passes through a float. Here they go to Spark as parameters, in a
session with ANSI mode on (dbt-spark turns it off), so that a value that does not fit its column
fails the seed instead of becoming NULL.

This replaces private parts of dbt-spark; `install` refuses a version that has moved them.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from floe.errors import FloeError
from floe.execution.spark.queries import BIGINT, run_bound

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

Sessions = Callable[[], "SparkSession"]

TRIED_WITH = "1.11.0"
MOST_DIGITS = 38
"""The digits of Spark's widest decimal."""

_sessions: list[Sessions] = []
"""Where bound statements run. Global: dbt's threads inherit no context variables."""

_types: MutableMapping[Any, dict[int, str]] = WeakKeyDictionary()
"""The types of a table's columns, because dbt asks for them with every cell."""


class DbtSparkMovedError(FloeError):
    """The installed dbt-spark lacks a private part that floe replaces."""

    def __init__(self, part: str) -> None:
        super().__init__(
            f"dbt-spark {version('dbt-spark')} does not have {part} as floe expects, so seeds "
            f"could be loaded with wrong values. Install dbt-spark {TRIED_WITH}, or a version that "
            "this version of floe supports."
        )


@contextmanager
def bound_in(sessions: Sessions) -> Iterator[None]:
    """Run statements with values in these sessions, within the block."""
    install()
    _sessions.append(sessions)
    try:
        yield
    finally:
        _sessions.remove(sessions)


def install() -> None:
    """Replace how dbt-spark binds values and infers the type of a number, once."""
    from dbt.adapters.spark import session
    from dbt.adapters.spark.impl import SparkAdapter

    wrapper: Any = _part(session, "SessionConnectionWrapper", "dbt.adapters.spark.session")
    if getattr(wrapper.execute, "binds_for_floe", False):
        return
    _require(wrapper, "execute", ["self", "sql", "bindings"])
    _require(wrapper, "cursor", ["self"])
    _require(_part(session, "Cursor", "dbt.adapters.spark.session"), "execute", ["self", "sql"])
    _require(SparkAdapter, "convert_number_type", ["agate_table", "col_idx"])
    original = wrapper.execute

    def execute(self: Any, sql: str, bindings: Sequence[Any] | None = None) -> None:
        if bindings is None or not _sessions:
            original(self, sql, bindings)
        else:
            self._cursor._df = run_bound(_sessions[-1](), sql, bindings)

    execute.binds_for_floe = True  # type: ignore[attr-defined]
    wrapper.execute = execute
    adapter: Any = SparkAdapter
    adapter.convert_number_type = classmethod(_convert_number_type)


def number_type(values: Iterable[Decimal | int | None]) -> str:
    """Return the narrowest of bigint, double and decimal that holds all values."""
    numbers = [Decimal(value) for value in values if value is not None]
    finite = [value for value in numbers if value.is_finite()]
    if len(finite) < len(numbers):
        return "double"
    scale = max((_scale(value) for value in finite), default=0)
    if scale == 0:
        fits = all(int(value) in BIGINT for value in finite)
        return "bigint" if fits else f"decimal({MOST_DIGITS},0)"
    if all(Decimal(repr(float(value))) == value for value in finite):
        return "double"
    return f"decimal({MOST_DIGITS},{min(scale, MOST_DIGITS)})"


def _convert_number_type(cls: Any, agate_table: Any, col_idx: int) -> str:
    known = _types.setdefault(agate_table, {})
    if col_idx not in known:
        known[col_idx] = number_type(agate_table.columns[col_idx].values())
    return known[col_idx]


def _scale(value: Decimal) -> int:
    """Return the number of decimal places, without trailing zeros."""
    return len(f"{value:f}".partition(".")[2].rstrip("0"))


def _part(owner: Any, name: str, shown: str) -> Any:
    part = getattr(owner, name, None)
    if part is None:
        raise DbtSparkMovedError(f"{shown}.{name}")
    return part


def _require(owner: Any, method: str, parameters: list[str]) -> None:
    """Refuse a class whose method is missing or takes other parameters."""
    function = _part(owner, method, owner.__name__)
    if list(inspect.signature(function).parameters)[: len(parameters)] != parameters:
        raise DbtSparkMovedError(f"{owner.__name__}.{method}({', '.join(parameters)})")
