"""The event door over HTTP: accepted and rejected events, and error messages."""

import gzip
import json
import tracemalloc
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from floe.api import create_app
from floe.api.routes import ingest
from floe.catalog.database import Catalog
from floe.catalog.recording import CatalogUnavailableError, EventClaim
from floe.errors import FloeError
from floe.events.ingest import DoorBusyError
from tests.api.night import COMPUTE, EXPOSURE, LOAD, event, newest_version, run_id, tell

LINEAGE, BATCH = "/api/v1/lineage", "/api/v1/lineage/batch"


def count(client: TestClient, noun: str) -> int:
    counts: dict[str, int] = client.get("/api/v1/stats").json()["counts"]
    return counts[noun]


@pytest.mark.parametrize("path", [LINEAGE, "/api/v1/run_event"])
def test_an_event_is_committed_before_201(admin: TestClient, path: str) -> None:
    answer = admin.post(path, json=event())
    assert (answer.status_code, answer.content) == (201, b"")
    run = admin.get(f"/api/v1/run/{run_id(COMPUTE)}").json()
    assert run["status"] == "SUCCESS"
    assert run["process_key"] == "AUTOSYS/BOX/COMPUTE"


def test_the_same_event_twice_changes_nothing(admin: TestClient) -> None:
    for _ in range(2):
        assert admin.post(LINEAGE, json=event()).status_code == 201
    assert (count(admin, "events"), count(admin, "versions")) == (1, 1)


def test_a_compressed_body_is_accepted(admin: TestClient) -> None:
    packed = gzip.compress(json.dumps(event()).encode())
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    assert admin.post(LINEAGE, content=packed, headers=headers).status_code == 201
    assert count(admin, "events") == 1


def test_a_body_compressed_in_two_parts_is_one_body(admin: TestClient) -> None:
    body = json.dumps(event()).encode()
    packed = gzip.compress(body[:50]) + gzip.compress(body[50:])
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    assert admin.post(LINEAGE, content=packed, headers=headers).status_code == 201


@pytest.mark.parametrize(
    ("packed", "status"),
    [
        (gzip.compress(b" " * (ingest.MOST_EVENT_BYTES + 1), mtime=0), 413),
        (b"not gzip at all", 400),
        (gzip.compress(b'{"eventType": "START"}', mtime=0)[:-9], 400),
    ],
    ids=["bomb", "no gzip", "cut off"],
)
def test_an_invalid_gzip_body_is_rejected(admin: TestClient, packed: bytes, status: int) -> None:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    answer = admin.post(LINEAGE, content=packed, headers=headers)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"Content-Type": "text/plain"}, "Content-Type 'text/plain' is not supported"),
        ({"Content-Type": ""}, "Content-Type is missing"),
        (
            {"Content-Type": "application/json", "Content-Encoding": "br"},
            "Content-Encoding 'br' is",
        ),
    ],
)
def test_an_unsupported_content_type_is_rejected(
    admin: TestClient, headers: dict[str, str], problem: str
) -> None:
    answer = admin.post(LINEAGE, content=b"{}", headers=headers)
    assert answer.status_code == 415
    assert problem in answer.json()["detail"]


def test_invalid_json_is_a_client_error(admin: TestClient) -> None:
    answer = admin.post(LINEAGE, content=b"{oops", headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("The body is not JSON")


def test_an_invalid_event_is_rejected_with_the_path_of_every_problem(admin: TestClient) -> None:
    bad = {**event(), "run": {"runId": 7}, "job": {"namespace": "", "name": "J"}}
    answer = admin.post(LINEAGE, json=bad)
    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {"path": "$.run.runId", "message": "must be text, not a number"},
        {"path": "$.job.namespace", "message": "is empty"},
    ]


def test_a_too_large_body_is_rejected_before_it_is_read(admin: TestClient) -> None:
    length = str(ingest.MOST_EVENT_BYTES + 1)
    headers = {"Content-Type": "application/json", "Content-Length": length}
    answer = admin.post(LINEAGE, content=b"{}", headers=headers)
    assert answer.status_code == 413


def test_a_historical_event_fills_history_and_triggers_nothing(admin: TestClient) -> None:
    assert admin.post(f"{LINEAGE}?historical=true", json=event()).status_code == 201
    assert admin.get(f"/api/v1/run/{run_id(COMPUTE)}").json()["historical"] is True
    assert admin.get("/api/v1/changes").json()["items"] == []
    assert admin.post(f"{LINEAGE}?historical=perhaps", json=event()).status_code == 422


@pytest.mark.parametrize("large", [False, True])
def test_an_event_older_than_retention_triggers_nothing_alone_or_in_a_batch(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    if large:
        monkeypatch.setattr(ingest, "LARGE_BYTES", 1)
    app = create_app(catalog, login=False, retention=timedelta(days=1))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.post(LINEAGE, json=event(LOAD)).status_code == 201
        assert client.post(f"{LINEAGE}/batch", json=[event(COMPUTE)]).status_code == 200
        for job in (LOAD, COMPUTE):
            assert client.get(f"/api/v1/run/{run_id(job)}").json()["historical"] is True
        assert client.get("/api/v1/changes").json()["items"] == []


class StubDoor:
    """A door that always gives the same answer."""

    def __init__(self, answer: FloeError) -> None:
        self._given = answer

    async def write(self, claims: Sequence[EventClaim]) -> dict[int, FloeError]:
        raise self._given


@pytest.mark.parametrize("error", [DoorBusyError(), CatalogUnavailableError("disk full")])
@pytest.mark.parametrize("path", [LINEAGE, BATCH])
def test_overload_and_outage_tell_the_sender_to_retry(
    admin: TestClient, error: FloeError, path: str
) -> None:
    services = admin.app.state.services  # type: ignore[attr-defined]
    door = services.door
    object.__setattr__(services, "door", StubDoor(error))
    answer = admin.post(path, json=[event()] if path == BATCH else event())
    object.__setattr__(services, "door", door)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"


def test_bodies_beyond_the_budget_are_rejected_before_memory_grows(admin: TestClient) -> None:
    budget = admin.app.state.services.budget  # type: ignore[attr-defined]
    budget.reserve(budget._most - 10)
    answer = admin.post(LINEAGE, json=event())
    budget.release(budget._most - 10)
    assert answer.status_code == 503
    assert admin.post(LINEAGE, json=event()).status_code == 201
    assert budget._reserved == 0


def lines(*events: Any) -> bytes:
    return (
        b"\n".join(json.dumps(event, separators=(",", ":")).encode() for event in events) + b"\n\n"
    )


def test_a_batch_can_be_a_list_or_lines(admin: TestClient) -> None:
    night = [event(LOAD, "START"), event(LOAD), event()]
    answer = admin.post(BATCH, json=night)
    assert answer.json() == {
        "status": "success",
        "summary": {
            "received": 3,
            "successful": 3,
            "failed": 0,
            "retriable": 0,
            "non_retriable": 0,
        },
        "failed_events": [],
    }
    headers = {"Content-Type": "application/x-ndjson"}
    answer = admin.post(BATCH, content=lines(*night), headers=headers)
    assert answer.json()["summary"]["successful"] == 3
    assert count(admin, "events") == 3


def test_an_invalid_event_of_a_batch_does_not_affect_others(admin: TestClient) -> None:
    answer = admin.post(BATCH, json=[event(LOAD), {"eventType": "START"}, event()])
    assert answer.status_code == 200
    result = answer.json()
    assert result["status"] == "partial_success"
    assert result["summary"] == {
        "received": 3,
        "successful": 2,
        "failed": 1,
        "retriable": 0,
        "non_retriable": 1,
    }
    assert [(failed["index"], failed["retriable"]) for failed in result["failed_events"]] == [
        (1, False)
    ]
    assert newest_version(admin, EXPOSURE)["state"] == "READY"


def test_a_batch_that_is_not_a_list_is_rejected(admin: TestClient) -> None:
    assert admin.post(BATCH, json={"eventType": "START"}).status_code == 422
    headers = {"Content-Type": "application/json"}
    assert admin.post(BATCH, content=b"[{", headers=headers).status_code == 400


def test_a_batch_of_too_many_events_is_rejected(
    admin: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "MOST_EVENTS", 2)
    answer = admin.post(BATCH, json=[event()] * 3)
    assert answer.status_code == 413
    assert "2 events" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"[" + b"0," * 8_000_000 + b"0]"),
        ("application/x-ndjson", b"0\n" * 8_000_000),
    ],
)
def test_a_batch_of_millions_is_rejected_before_memory_grows(
    admin: TestClient, kind: str, body: bytes
) -> None:
    tracemalloc.start()
    answer = admin.post(BATCH, content=body, headers={"Content-Type": kind})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.status_code == 413
    assert most < 4 * len(body)


def test_invalid_text_affects_only_its_own_event(admin: TestClient) -> None:
    odd = json.dumps(event(LOAD)).encode().replace(b'"producer": "', b'"producer": "\xff')
    assert b"\xff" in odd
    alone = admin.post(LINEAGE, content=odd, headers={"Content-Type": "application/json"})
    assert (alone.status_code, alone.json()["title"]) == (400, "Bad Request")
    body = b"[" + odd + b"," + json.dumps(event()).encode() + b"]"
    answer = admin.post(BATCH, content=body, headers={"Content-Type": "application/json"}).json()
    assert [failed["index"] for failed in answer["failed_events"]] == [0]
    assert count(admin, "events") == 1


def test_a_large_batch_is_committed_in_several_groups(
    admin: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "EVENTS_AT_ONCE", 2)
    tell(admin, "2026-09-01", "2026-09-02")
    assert (count(admin, "events"), count(admin, "runs")) == (12, 6)


def test_outcomes_of_events_are_counted(admin: TestClient) -> None:
    admin.post(BATCH, json=[event(), {"nonsense": True}])
    shown = admin.get("/metrics").text
    assert 'floe_events_total{outcome="committed"} 1.0' in shown
    assert 'floe_events_total{outcome="refused"} 1.0' in shown
    assert 'floe_http_requests_total{operation="send_batch",status="200"} 1.0' in shown


def test_one_call_registers_a_version(admin: TestClient) -> None:
    report = {"dataset_name": "credit.positions", "version": "2026-09-01", "rows": 12}
    answer = admin.post("/api/v1/register_dataset", json=report)
    assert answer.status_code == 201
    version = newest_version(admin, "lake/credit.positions")
    assert (version["version_tag"], version["state"]) == ("2026-09-01", "READY")
    assert version["produced_by_run_id"] == answer.json()["run_id"]
    assert version["row_count"] == 12


def test_repeating_a_call_changes_nothing(admin: TestClient) -> None:
    report = {"dataset_name": "credit.positions", "version": "2026-09-01"}
    first, second = (admin.post("/api/v1/register_dataset", json=report) for _ in range(2))
    assert first.json() == second.json()
    assert admin.get("/api/v1/stats").json()["counts"]["versions"] == 1


def test_calls_with_the_same_run_id_belong_to_one_run(admin: TestClient) -> None:
    for status in ("STARTED", "SUCCESS"):
        report = {
            "process_name": "AUTOSYS/BOX/JOB",
            "status": status,
            "run_id": "4711",
            "inputs": ["credit.positions"],
            "outputs": [{"name": "credit.exposure", "rows": 5}],
        }
        answer = admin.post("/api/v1/register_process", json=report)
        assert answer.status_code == 201
    run = admin.get(f"/api/v1/run/{answer.json()['run_id']}").json()
    assert (run["status"], run["process_key"]) == ("SUCCESS", "AUTOSYS/BOX/JOB")
    assert [item["full_name"] for item in run["inputs"]] == ["lake/credit.positions"]
    assert [item["row_count"] for item in run["outputs"]] == [5]


@pytest.mark.parametrize(
    ("path", "report", "reason"),
    [
        ("register_process", {"process_name": "A/B", "status": "DONE"}, "Unknown status 'DONE'"),
        ("register_process", {"status": "SUCCESS"}, "missing required field `process_name`"),
        ("register_process", {"process_name": "JOB", "status": "SUCCESS"}, "namespace is missing"),
        ("register_dataset", {"dataset_name": "a", "tidings": 1}, "unknown field `tidings`"),
        ("register_dataset", {"dataset_name": "a", "rows": -1}, "$.rows"),
        ("register_dataset", {"dataset_name": "a\x00b"}, "$.dataset_name"),
    ],
)
def test_an_invalid_call_is_rejected_with_the_reason(
    admin: TestClient, path: str, report: dict[str, object], reason: str
) -> None:
    answer = admin.post(f"/api/v1/{path}", json=report)
    assert answer.status_code == 422
    assert reason in answer.json()["detail"]
