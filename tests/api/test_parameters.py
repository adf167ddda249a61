"""Query parameters: unknown ones are rejected, with a suggestion."""

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from floe.api import describe_api

RUN = "0190a0f2-7b1c-7cc3-8f36-3c1f1d2c9a51"
OPERATIONS = [
    (method, path, operation)
    for path, methods in describe_api()["paths"].items()
    for method, operation in methods.items()
]
IDS = [operation["operationId"] for _, _, operation in OPERATIONS]


def filled(path: str) -> str:
    return re.sub(r"\{\w+\}", "1", path.replace("{run_uuid}", RUN))


def names_of(operation: dict[str, Any]) -> list[str]:
    return [
        parameter["name"]
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query"
    ]


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=IDS)
def test_every_route_rejects_unknown_parameters(
    admin: TestClient, method: str, path: str, operation: dict[str, Any]
) -> None:
    answer = admin.request(method, f"{filled(path)}?no_such_thing=1")
    assert answer.status_code == 422, answer.text
    (fault,) = answer.json()["errors"]
    assert fault["path"] == "query.no_such_thing"
    assert fault["message"].startswith("unknown parameter. ")
    for name in names_of(operation):
        assert name in fault["message"]


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=IDS)
def test_every_documented_parameter_is_accepted(
    admin: TestClient, method: str, path: str, operation: dict[str, Any]
) -> None:
    for name in names_of(operation):
        answer = admin.request(method, filled(path), params={name: "1"})
        assert f"query.{name}: unknown" not in answer.text
        near = admin.request(method, filled(path), params={f"{name}x": "1"})
        assert f"Did you mean '{name}'?" in near.text


def test_each_unknown_parameter_is_reported_once(admin: TestClient) -> None:
    answer = admin.get("/api/v1/runs?busines_date=2026-09-01&x=1&x=2&limit=5")
    assert [error["path"] for error in answer.json()["errors"]] == ["query.busines_date", "query.x"]
    assert "Did you mean 'business_date'?" in answer.json()["detail"]


def test_unauthorized_callers_get_no_parameter_names(anonymous: TestClient) -> None:
    assert anonymous.get("/api/v1/runs?x=1").status_code == 401


@pytest.mark.parametrize("day", ["0001-01-01", "1899-12-31", "2200-01-01", "9999-12-31"])
def test_a_business_date_out_of_range_is_rejected_with_the_bound(
    admin: TestClient, day: str
) -> None:
    for method, path, operation in OPERATIONS:
        if "business_date" in names_of(operation):
            answer = admin.request(method, filled(path), params={"business_date": day})
            assert answer.status_code == 422
            assert "1900-01-01" in answer.text or "2199-12-31" in answer.text


@pytest.mark.parametrize(
    "moment",
    ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "1900-01-01T00:00:00Z"],
)
def test_timestamps_at_the_bounds_work_in_any_zone(admin: TestClient, moment: str) -> None:
    for method, path, operation in OPERATIONS:
        for name in {"since", "until"} & set(names_of(operation)):
            answer = admin.request(method, filled(path), params={name: moment})
            assert answer.status_code in (200, 404, 422), (path, answer.text)
