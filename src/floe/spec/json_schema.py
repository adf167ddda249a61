"""JSON Schemas of floe.yaml and platform.yaml, for editors.

They accept what floe accepts: a variable instead of any number, boolean or choice, and a
list of files to include instead of a section.
"""

from datetime import timedelta
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from floe.spec.base import SpecModel
from floe.spec.document import EXTENSION
from floe.spec.formats import BUILT_IN
from floe.spec.includes import INCLUDE
from floe.spec.platform import PlatformSpec
from floe.spec.project import SECTIONS, ProjectSpec
from floe.spec.values import format_duration

Schema = dict[str, Any]
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VARIABLE = {"$ref": "#/$defs/Variable"}
_VARIABLE_SCHEMA = {
    "type": "string",
    "pattern": r"\$\{",
    "description": "An environment variable: ${NAME} or ${NAME:default}.",
}
_FILES = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Patterns of files to include, relative to the project folder.",
}


class _Generator(GenerateJsonSchema):
    """Omits titles, which only repeat names; formats durations as users write them."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, timedelta):
            return format_duration(dft)
        if isinstance(dft, SpecModel):
            return {}
        return super().encode_default(dft)


def project_schema() -> Schema:
    """Return the schema of floe.yaml."""
    schema = _schema_of(ProjectSpec, "floe.yaml")
    for section in SECTIONS:
        owner = schema
        for step in section[:-1]:
            name = owner["properties"][step]["$ref"].rpartition("/")[2]
            owner = schema["$defs"][name]
        _allow_includes(owner["properties"], section[-1])
    schema["patternProperties"] = {
        f"^{EXTENSION}": {"description": "Ignored; use it to define anchors."}
    }
    _tie_options_to_format(schema)
    return schema


def platform_schema() -> Schema:
    """Return the schema of platform.yaml."""
    schema = _schema_of(PlatformSpec, "platform.yaml")
    schema["patternProperties"] = {
        f"^{EXTENSION}": {"description": "Ignored; use it to define anchors."}
    }
    return schema


def _schema_of(model: type[SpecModel], title: str) -> Schema:
    schema = model.model_json_schema(schema_generator=_Generator)
    schema = _with_variables(schema)
    schema["$defs"]["Variable"] = _VARIABLE_SCHEMA
    return {"$schema": _DIALECT, "title": title, **schema}


def _with_variables(node: Any) -> Any:
    """Allow a variable wherever the schema expects something stricter than text."""
    if isinstance(node, list):
        return [_with_variables(item) for item in node]
    if not isinstance(node, dict):
        return node
    changed = {
        key: value if key in ("default", "examples", "enum") else _with_variables(value)
        for key, value in node.items()
        if key != "title" or not isinstance(value, str)
    }
    strict = changed.get("type") in ("integer", "number", "boolean") or "enum" in changed
    if not strict and not (changed.get("type") == "string" and "pattern" in changed):
        return changed
    kept = {key: changed.pop(key) for key in ("description", "default") if key in changed}
    return {"anyOf": [changed, _VARIABLE], **kept}


def _allow_includes(properties: Schema, name: str) -> None:
    section = properties[name]
    description = section.pop("description")
    element = section.pop("additionalProperties", None) or {}
    in_place = {
        **section,
        "properties": {INCLUDE: {"anyOf": [{"type": "string"}, _FILES]}},
        "additionalProperties": {"anyOf": [element, {"type": "null"}]},
    }
    in_place.pop("default", None)
    properties[name] = {"anyOf": [in_place, _FILES], "description": description}


def _tie_options_to_format(schema: Schema) -> None:
    """Check the options of a built-in format against that format's model."""
    cases = []
    for name, model in BUILT_IN.items():
        options = _with_variables(model.model_json_schema(schema_generator=_Generator))
        options.pop("$defs", None)
        schema["$defs"][model.__name__] = options
        cases.append(
            {
                "if": {"properties": {"format": {"const": name}}, "required": ["format"]},
                "then": {"properties": {"options": {"$ref": f"#/$defs/{model.__name__}"}}},
            }
        )
    schema["$defs"]["DatasetSpec"]["allOf"] = cases
