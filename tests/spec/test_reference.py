"""The checked-in schemas and reference pages match the models."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floe.spec.base import SpecModel, describe_fields
from floe.spec.json_schema import platform_schema, project_schema
from floe.spec.reference import MARKER, PAGES, key_tables, schema_text

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
RENEW = "Run: python -m floe.spec.reference docs/reference"


def models(base: type[SpecModel] = SpecModel) -> Iterator[type[SpecModel]]:
    for model in base.__subclasses__():
        yield model
        yield from models(model)


@pytest.mark.parametrize("name", PAGES)
def test_checked_in_schema_is_up_to_date(name: str) -> None:
    stored = (REFERENCE / f"{name}.schema.json").read_text(encoding="utf-8")
    assert stored == schema_text(PAGES[name]()), RENEW


@pytest.mark.parametrize("name", PAGES)
def test_reference_page_is_up_to_date(name: str) -> None:
    page = (REFERENCE / f"{name}.md").read_text(encoding="utf-8")
    above, _, below = page.partition(MARKER)
    assert len(above) > 500
    assert below.strip() == key_tables(PAGES[name]()).strip(), RENEW


@pytest.mark.parametrize("model", sorted(set(models()), key=str))
def test_every_key_of_every_model_is_documented(model: type[SpecModel]) -> None:
    pages = "".join((REFERENCE / f"{name}.md").read_text(encoding="utf-8") for name in PAGES)
    meanings = describe_fields(model)
    assert model.__doc__
    for name, field in model.model_fields.items():
        assert meanings.get(name), f"{model.__name__}.{name} has no text under it"
        assert f"| `{field.alias or name}` |" in pages


def accepts(schema: dict[str, Any], node: dict[str, Any], kind: str) -> bool:
    """Return whether a part of a schema accepts a JSON type."""
    if "$ref" in node:
        return accepts(schema, schema["$defs"][node["$ref"].rpartition("/")[2]], kind)
    arms = node.get("anyOf", []) + node.get("oneOf", [])
    return node.get("type") == kind or any(accepts(schema, arm, kind) for arm in arms)


def test_variable_can_replace_numbers_and_booleans() -> None:
    schema = project_schema()
    schedule = schema["$defs"]["Schedule"]["properties"]
    backfill = schema["$defs"]["Backfill"]["properties"]
    for node in (schedule["enabled"], schedule["partition_selector"], backfill["batch_size"]):
        assert {"$ref": "#/$defs/Variable"} in node["anyOf"]


def test_sections_accept_names_files_and_both() -> None:
    schema = project_schema()
    datasets = schema["properties"]["datasets"]
    assert accepts(schema, datasets, "array")
    assert accepts(schema, datasets, "object")
    in_place = datasets["anyOf"][0]
    assert "include" in in_place["properties"]
    assert accepts(schema, in_place["additionalProperties"], "null")


def test_shorthands_are_text_or_a_mapping() -> None:
    schema = project_schema()
    process = schema["$defs"]["ProcessSpec"]["properties"]
    dataset = schema["$defs"]["DatasetSpec"]["properties"]
    nodes = (process["inputs"]["additionalProperties"], dataset["retention"])
    for node in nodes:
        assert accepts(schema, node, "string")
        assert accepts(schema, node, "object")


def test_options_follow_the_format() -> None:
    cases = project_schema()["$defs"]["DatasetSpec"]["allOf"]
    csv = next(case for case in cases if case["if"]["properties"]["format"]["const"] == "csv")
    assert csv["then"]["properties"]["options"] == {"$ref": "#/$defs/CsvOptions"}


def test_schema_rejects_unknown_keys_and_formats_durations() -> None:
    schema = project_schema()
    retry = schema["$defs"]["Retry"]
    assert retry["additionalProperties"] is False
    assert retry["properties"]["delay"]["default"] == "30s"


def test_every_reference_of_a_schema_has_a_target() -> None:
    for schema in (project_schema(), platform_schema()):
        text = json.dumps(schema)
        for name in {part.split('"')[0] for part in text.split("#/$defs/")[1:]}:
            assert name in schema["$defs"]
