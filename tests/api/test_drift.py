"""Drift over HTTP: claims are listed for all, and stewards decide on them."""

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from floe.catalog.principals import DATA_CONSUMER, DATA_OWNER, DATA_STEWARD, INGEST, PLATFORM_ADMIN
from tests.events.factory import LAKE, event, recently, written

NAMES = ["credit.exposure", "credit.report"]
AsRole = Callable[[str], TestClient]


@pytest.fixture
def claimed(as_role: AsRole) -> int:
    """Two datasets that a steward has curated, and an event that says they are one."""
    for name in NAMES:
        body = event("COMPLETE", recently(0), name, outputs=[written(name)])
        send(as_role(INGEST), body)
        steward = as_role(DATA_STEWARD)
        found = steward.get("/api/v1/dataset", params={"full_name": f"{LAKE}/{name}"}).json()
        answer = steward.patch(f"/api/v1/dataset/{found['dataset_id']}", json={"category": "risk"})
        assert answer.status_code == 200
    linked = written(NAMES[1], symlink=(LAKE, NAMES[0]))
    send(as_role(INGEST), event("COMPLETE", recently(1), "claim", outputs=[linked]))
    steward = as_role(DATA_STEWARD)
    (claim,) = steward.get("/api/v1/drift/claims").json()["items"]
    assert (claim["kind"], claim["status"]) == ("SAME_DATASET", "OPEN")
    assert {claim["dataset"], claim["subject"]} == {f"{LAKE}/{name}" for name in NAMES}
    number: int = claim["claim_id"]
    return number


def send(client: TestClient, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    assert client.post("/api/v1/lineage", content=body, headers=headers).status_code == 201


def names_of(client: TestClient) -> set[str]:
    asked = [{"full_name": f"{LAKE}/{name}"} for name in NAMES]
    return {client.get("/api/v1/dataset", params=one).json()["full_name"] for one in asked}


def test_a_claim_is_accepted_and_the_join_undone(as_role: AsRole, claimed: int) -> None:
    steward = as_role(DATA_STEWARD)
    answer = steward.post(f"/api/v1/drift/claim/{claimed}/accept", json={"comment": "the same"})
    kept = answer.json()["dataset"]
    assert (answer.status_code, answer.json()["status"]) == (200, "ACCEPTED")
    assert names_of(steward) == {kept}
    (gone,) = {f"{LAKE}/{name}" for name in NAMES} - {kept}
    answer = steward.post("/api/v1/dataset/split", json={"full_name": gone, "comment": "a copy"})
    assert (answer.json()["full_name"], answer.json()["kept_name"]) == (gone, kept)
    assert names_of(steward) == {gone, kept}
    again = steward.post("/api/v1/dataset/split", json={"full_name": gone})
    assert again.status_code == 404
    entries = steward.get("/api/v1/audit", params={"object_type": "DATASET"}).json()["items"]
    actions = [(one["actor"], one["action"], one["reason"]) for one in entries[:2]]
    assert actions == [
        ("data_steward", "dataset.split", "a copy"),
        ("data_steward", "dataset.join", "the same"),
    ]


def test_a_claim_is_dismissed_once(as_role: AsRole, claimed: int) -> None:
    steward = as_role(DATA_STEWARD)
    assert steward.post(f"/api/v1/drift/claim/{claimed}/dismiss").json()["status"] == "DISMISSED"
    assert steward.get("/api/v1/drift/claims").json()["items"] == []
    (claim,) = steward.get("/api/v1/drift/claims", params={"status": "DISMISSED"}).json()["items"]
    assert claim["decided_by"] == "data_steward"
    assert steward.post(f"/api/v1/drift/claim/{claimed}/accept").status_code == 409
    assert steward.post("/api/v1/drift/claim/999/accept").status_code == 404
    assert len(names_of(steward)) == 2


@pytest.mark.parametrize("role", [INGEST, DATA_CONSUMER, DATA_OWNER])
def test_only_stewards_decide(as_role: AsRole, claimed: int, role: str) -> None:
    client = as_role(role)
    for path in (f"drift/claim/{claimed}/accept", f"drift/claim/{claimed}/dismiss"):
        assert client.post(f"/api/v1/{path}").status_code == 403
    body = {"full_name": f"{LAKE}/{NAMES[0]}"}
    assert client.post("/api/v1/dataset/split", json=body).status_code == 403
    assert len(as_role(PLATFORM_ADMIN).get("/api/v1/drift/claims").json()["items"]) == 1


def test_what_only_floe_may_say_is_refused_with_a_sentence(as_role: AsRole) -> None:
    client = as_role(INGEST)
    body = event("COMPLETE", recently(0), namespace="floe/risk")
    headers = {"content-type": "application/json"}
    answer = client.post("/api/v1/lineage", content=body, headers=headers)
    assert answer.status_code == 422
    assert "are reserved for processes that floe runs itself" in answer.json()["detail"]
    late = recently(0).replace(year=2199)
    answer = client.post("/api/v1/lineage", content=event("START", late), headers=headers)
    assert answer.status_code == 422
    assert "more than a day ahead of now" in answer.json()["detail"]
