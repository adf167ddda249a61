"""The ground that every model of floe.yaml and platform.yaml stands on."""

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler


class SpecModel(BaseModel):
    """Something that a user declares: unknown keys are refused, nothing changes after load.

    The text under a field is its documentation: editors show it, and the reference pages
    are written from it.
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
    """Return the text under each field, its own and those of its base models."""
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
