"""Checks as written in floe.yaml, and the columns of the demo's positions."""

from typing import Any

from pydantic import TypeAdapter

from floe.spec.checks import AnyCheck
from floe.spec.datasets import Column

_CHECKS: TypeAdapter[AnyCheck] = TypeAdapter(AnyCheck)

POSITIONS = (
    Column(name="position_id", type="bigint", nullable=False),
    Column(name="book", type="string"),
    Column(name="product", type="string"),
    Column(name="notional", type="decimal(18,2)"),
    Column(name="weight", type="double"),
    Column(name="share", type="float"),
    Column(name="maturity", type="date"),
    Column(name="traded_at", type="timestamp"),
    Column(name="open", type="boolean"),
)


def check(**values: Any) -> AnyCheck:
    """A check as written in floe.yaml."""
    return _CHECKS.validate_python(values)
