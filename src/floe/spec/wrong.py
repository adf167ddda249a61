"""How a value says that it is wrong: what, what to do, and an example of what is right."""

import re
from collections.abc import Callable
from typing import Any

from pydantic import WithJsonSchema
from pydantic_core import PydanticCustomError


def wrong(message: str, hint: str, example: str = "") -> PydanticCustomError:
    """Make the error that a validator raises: what is wrong, what to do, what would be right."""
    return PydanticCustomError(
        "floe_value", "{message}", {"message": message, "hint": hint, "example": example}
    )


def matching(pattern: str, what: str, hint: str, example: str) -> Callable[[str], str]:
    """Make a validator that accepts what a pattern matches, and calls the rest no `what`."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if compiled.fullmatch(text) is None:
            raise wrong(f"'{text}' is not {what}", hint, example)
        return text

    return check


def text_schema(example: str, description: str) -> WithJsonSchema:
    """Describe to editors a value that is written as text."""
    return WithJsonSchema({"type": "string", "examples": [example], "description": description})


def only_text(parse: Callable[[Any], Any], *also: type) -> Callable[[Any], Any]:
    """Refuse lists and mappings before a parser sees them."""

    def check(value: object) -> object:
        if not isinstance(value, (str, *also)):
            raise PydanticCustomError("string_type", "Input should be a valid string")
        return parse(value)

    return check
