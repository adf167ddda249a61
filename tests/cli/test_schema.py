"""`floe schema`: print the JSON Schema of either file."""

import json

import pytest

from floe.cli.schema import SchemaFile, schema
from floe.spec.json_schema import platform_schema, project_schema


def test_schema_of_floe_yaml_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    schema()
    assert json.loads(capsys.readouterr().out) == project_schema()


def test_schema_of_platform_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    schema(SchemaFile.PLATFORM)
    assert json.loads(capsys.readouterr().out) == platform_schema()
