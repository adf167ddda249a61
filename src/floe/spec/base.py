"""The base model of floe.yaml and platform.yaml, and helpers for its validators."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import PydanticCustomError


class SpecModel(BaseModel):
    """Base of all declarations: unknown keys are errors, instances are frozen.

    The text under a field is its documentation: editors show it, and the reference pages
    are generated from it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = handler.resolve_ref_schema(handler(core_schema))
        schema["description"] = inspect.cleandoc(cls.__doc__ or "")
        meanings = describe_fields(cls)
        for name, field in cls.model_fields.items():
            schema["properties"][field.alias or name]["description"] = meanings[name]
        return schema


def describe_fields(model: type[BaseModel]) -> dict[str, str]:
    """Return the documentation under each field, including those of base models."""
    meanings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base.model_fields:
            meanings |= _texts_under_fields(base)
    return meanings


def _texts_under_fields(model: type[BaseModel]) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(model)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    texts = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            value = text.value if isinstance(text, ast.Expr) else None
            if isinstance(value, ast.Constant):
                texts[field.target.id] = str(value.value)
    return texts


def value_error(message: str, hint: str, example: str = "") -> PydanticCustomError:
    """Return the error a validator raises: what is wrong, what to do, a valid example."""
    return PydanticCustomError(
        "floe_value", "{message}", {"message": message, "hint": hint, "example": example}
    )


def must_match(pattern: str, noun: str, hint: str, example: str) -> Callable[[str], str]:
    """Return a validator for text matching a pattern; errors call it `noun`."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if compiled.fullmatch(text) is None:
            raise value_error(f"'{text}' is not {noun}", hint, example)
        return text

    return check


def text_schema(example: str, description: str) -> WithJsonSchema:
    """Return the JSON Schema of a value that is written as text."""
    return WithJsonSchema({"type": "string", "examples": [example], "description": description})


def only_text(parse: Callable[[Any], Any], *also: type) -> Callable[[Any], Any]:
    """Wrap a parser so that it rejects values that are not text, such as lists."""

    def check(value: object) -> object:
        if not isinstance(value, (str, *also)):
            raise PydanticCustomError("string_type", "Input should be a valid string")
        return parse(value)

    return check
