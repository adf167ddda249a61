"""The fast path for events gives the same responses as the normal path."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from floe.api import middleware
from floe.catalog.recording import CatalogUnavailableError
from tests.api.night import event

LINEAGE, RUN_EVENT = "/api/v1/lineage", "/api/v1/run_event"
# This is the default, but a request with a query takes the normal path.
LONG_WAY = "?historical=false"
JSON = {"Content-Type": "application/json"}
MANY_REASONS = {
    **event(),
    "inputs": [{"namespace": 1, "name": ""} for _ in range(100)],
}
BODIES = {
    "event": json.dumps(event()).encode(),
    "no json": b"{oops",
    "no event": b"[]",
    "empty": b"",
    "a long answer, packed": json.dumps(MANY_REASONS).encode(),
}


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operations of requests that took the fast path."""
    operations, find = [], middleware.match_fast_path

    def find_and_note(*arguments: Any) -> middleware.FastRequest | None:
        plain = find(*arguments)
        if plain is not None:
            operations.append(plain.operation)
        return plain

    monkeypatch.setattr(middleware, "match_fast_path", find_and_note)
    return operations


@pytest.fixture
def known(admin: TestClient) -> TestClient:
    """A client whose token is cached."""
    assert admin.get("/api/v1/me").status_code == 200
    return admin


@pytest.mark.parametrize("path", [LINEAGE, RUN_EVENT])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_both_paths_give_the_same_response(
    known: TestClient, taken: list[str], path: str, body: bytes
) -> None:
    short = known.post(path, content=body, headers=JSON)
    assert len(taken) == 1
    long = known.post(path + LONG_WAY, content=body, headers=JSON)
    assert len(taken) == 1
    assert (short.status_code, short.content) == (long.status_code, long.content)
    assert sorted(short.headers.multi_items()) == sorted(long.headers.multi_items())


def test_an_outage_is_answered_the_same_way(
    known: TestClient, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def be_away(*_: object, **__: object) -> None:
        raise CatalogUnavailableError("disk full")

    monkeypatch.setattr(middleware, "take_event", be_away)
    answer = known.post(LINEAGE, json=event())
    assert (taken, answer.status_code, answer.headers["retry-after"]) == (["send_event"], 503, "2")


def test_an_internal_error_is_answered_with_500(
    known: TestClient, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(middleware, "take_event", fail)
    answer = known.post(LINEAGE, json=event())
    assert (taken, answer.status_code) == (["send_event"], 500)
    assert answer.json()["detail"] == "Internal server error. See the server's log for details."


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json; charset=utf-8"},
        {"Content-Type": "application/json", "Content-Encoding": "identity"},
        {"Content-Type": "application/json", "Authorization": "Basic Zm9v"},
        {"Content-Type": "application/json", "Authorization": "Bearer unknown"},
    ],
)
def test_unusual_requests_take_the_normal_path(
    known: TestClient, taken: list[str], headers: dict[str, str]
) -> None:
    known.post(LINEAGE, content=BODIES["event"], headers=headers)
    assert taken == []


def test_only_authorized_callers_take_the_fast_path(
    as_role: Callable[[str], TestClient], taken: list[str]
) -> None:
    client = as_role("DATA_CONSUMER")
    assert client.get("/api/v1/me").status_code == 200
    assert client.post(LINEAGE, json=event()).status_code == 403
    assert taken == []
    client = as_role("INGEST")
    assert client.get("/api/v1/me").status_code == 200
    assert client.post(LINEAGE, json=event()).status_code == 201
    assert taken == ["send_event"]


def test_both_paths_are_counted_as_one_operation(known: TestClient, taken: list[str]) -> None:
    for path in (LINEAGE, LINEAGE + LONG_WAY):
        assert known.post(path, json=event()).status_code == 201
    assert taken == ["send_event"]
    shown = known.get("/metrics").text
    assert 'floe_http_requests_total{operation="send_event",status="201"} 2.0' in shown
    assert 'floe_events_total{outcome="committed"} 2.0' in shown


def test_the_budget_is_released(known: TestClient, taken: list[str]) -> None:
    for body in BODIES.values():
        known.post(LINEAGE, content=body, headers=JSON)
    assert len(taken) == len(BODIES)
    assert known.app.state.services.budget._reserved == 0  # type: ignore[attr-defined]
