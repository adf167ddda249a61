"""What the one number of a SQL check must be."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator

from floe.spec.wrong import only_text, text_schema, wrong


@dataclass(frozen=True)
class Expectation:
    """What the one number of a SQL check must be: `= 0`, `>= 100`, `between 1 and 5`."""

    operator: str
    low: float
    high: float | None = None

    def __str__(self) -> str:
        if self.high is not None:
            return f"between {self.low:g} and {self.high:g}"
        return f"{self.operator} {self.low:g}"


_FIGURE = r"(-?[0-9]+(?:\.[0-9]+)?)"
_COMPARISON = re.compile(rf"\s*(=|==|!=|<>|<=|>=|<|>)?\s*{_FIGURE}\s*")
_BETWEEN = re.compile(rf"\s*between\s+{_FIGURE}\s+and\s+{_FIGURE}\s*", re.IGNORECASE)


def parse_expectation(value: str | Expectation) -> Expectation:
    """Read `= 0`, `>= 100`, `between 1 and 5`; a bare number means equality."""
    if isinstance(value, Expectation):
        return value
    if match := _BETWEEN.fullmatch(value):
        return Expectation("between", float(match[1]), float(match[2]))
    if match := _COMPARISON.fullmatch(value):
        operator = {None: "=", "==": "=", "<>": "!="}.get(match[1], match[1])
        return Expectation(operator, float(match[2]))
    hint = 'Write a comparison, such as "= 0", ">= 100" or "between 1 and 5".'
    raise wrong(f"'{value}' is not an expectation", hint, "= 0")


Expected = Annotated[
    Expectation,
    PlainValidator(only_text(parse_expectation, Expectation)),
    PlainSerializer(str, when_used="json"),
    text_schema("= 0", "A comparison: = 0, >= 100, between 1 and 5."),
]
