"""The OpenAPI document: complete, up to date, and consistent with the docs."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from floe.api import describe_api
from floe.api.openapi import _schemas
from floe.api.responses import STATUSES
from floe.api.schemas.examples import EXAMPLES

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
DOCUMENT = describe_api()
OPERATIONS = [
    (method, path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def test_the_checked_in_document_is_up_to_date() -> None:
    checked_in = json.loads((REFERENCE / "openapi.json").read_text())
    assert checked_in == json.loads(json.dumps(DOCUMENT)), (
        "Write it anew with: floe api --openapi > docs/reference/openapi.json"
    )


def test_the_running_api_describes_itself(admin: TestClient) -> None:
    assert admin.get("/api/v1/openapi.json").json() == json.loads(json.dumps(DOCUMENT))


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_every_operation_is_documented(method: str, path: str, operation: dict[str, Any]) -> None:
    assert operation["operationId"].isidentifier()
    assert operation["summary"]
    assert operation["description"]
    assert operation["tags"]
    good = [status for status in operation["responses"] if status.startswith("2")]
    assert len(good) == 1
    assert {"500", "503"} <= set(operation["responses"])
    problems = DOCUMENT["components"]["responses"]
    for status, response in operation["responses"].items():
        if status >= "400":
            described = problems[response["$ref"].rpartition("/")[2]]
            assert list(described["content"]) == ["application/problem+json"]
    assert ("requestBody" in operation) == (method in ("post", "patch"))


def test_operation_ids_are_unique() -> None:
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(ids) == len(set(ids))


def test_every_reference_has_a_target() -> None:
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(DOCUMENT)))
    assert named <= set(DOCUMENT["components"]["schemas"])


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_example_matches_its_schema(name: str) -> None:
    msgspec.convert(EXAMPLES[name], _schemas[name])


def test_the_page_about_the_api_lists_every_path() -> None:
    page = (REFERENCE / "api.md").read_text()
    listed = set(re.findall(r"^\| `(GET|POST|PATCH|DELETE) (/\S*)` \|", page, re.MULTILINE))
    assert listed == {(method.upper(), path) for method, path, _ in OPERATIONS}


def test_the_page_about_the_api_lists_every_status_of_an_error() -> None:
    page = (REFERENCE / "api.md").read_text()
    listed = {int(status) for status in re.findall(r"^\| (\d{3}) \|", page, re.MULTILINE)}
    assert {*STATUSES.values(), 405, 500} <= listed
