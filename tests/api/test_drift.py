"""Drift over HTTP: everybody can list claims, stewards decide on them."""

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from floe.catalog.principals import DATA_CONSUMER, DATA_OWNER, DATA_STEWARD, INGEST, PLATFORM_ADMIN
from tests.events.factory import LAKE, event, recently, written

NAMES = ["credit.exposure", "credit.report"]
AsRole = Callable[[str], TestClient]


@pytest.fixture
def claimed(as_role: AsRole) -> int:
    """Two curated datasets, and an event that says they are the same."""
    for name in NAMES:
        body = event("COMPLETE", recently(0), name, outputs=[written(name)])
        send(as_role(INGEST), body)
        steward = as_role(DATA_STEWARD)
        dataset = steward.get("/api/v1/dataset", params={"full_name": f"{LAKE}/{name}"}).json()
        answer = steward.patch(
            f"/api/v1/dataset/{dataset['dataset_id']}", json={"category": "risk"}
        )
        assert answer.status_code == 200
    linked = written(NAMES[1], symlink=(LAKE, NAMES[0]))
    send(as_role(INGEST), event("COMPLETE", recently(1), "claim", outputs=[linked]))
    steward = as_role(DATA_STEWARD)
    (claim,) = steward.get("/api/v1/drift/claims").json()["items"]
    assert (claim["kind"], claim["status"]) == ("SAME_DATASET", "OPEN")
    assert {claim["dataset"], claim["subject"]} == {f"{LAKE}/{name}" for name in NAMES}
    claim_id: int = claim["claim_id"]
    return claim_id


def send(client: TestClient, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    assert client.post("/api/v1/lineage", content=body, headers=headers).status_code == 201


def names_of(client: TestClient) -> set[str]:
    asked = [{"full_name": f"{LAKE}/{name}"} for name in NAMES]
    return {client.get("/api/v1/dataset", params=params).json()["full_name"] for params in asked}


def test_a_claim_is_accepted_and_the_join_reverted(as_role: AsRole, claimed: int) -> None:
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
    actions = [(entry["actor"], entry["action"], entry["reason"]) for entry in entries[:2]]
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


def test_claims_reserved_for_floe_are_rejected_with_a_reason(as_role: AsRole) -> None:
    client = as_role(INGEST)
    body = event("COMPLETE", recently(0), namespace="floe/risk")
    headers = {"content-type": "application/json"}
    answer = client.post("/api/v1/lineage", content=body, headers=headers)
    assert answer.status_code == 422
    assert "are reserved for processes that floe runs" in answer.json()["detail"]
    late = recently(0).replace(year=2199)
    answer = client.post("/api/v1/lineage", content=event("START", late), headers=headers)
    assert answer.status_code == 422
    assert "more than a day in the future" in answer.json()["detail"]
