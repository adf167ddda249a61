"""Registrations: asked for, decided, and decided once."""

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from floe.catalog.principals import DATA_OWNER, DATA_STEWARD

WANTED = {
    "namespace": "lake",
    "name": "credit.limits",
    "category": "credit",
    "owner_team": "Credit Risk",
    "comment": "For the monthly report.",
}


@pytest.fixture
def asked(as_role: Callable[[str], TestClient]) -> int:
    """An owner has asked for a dataset."""
    answer = as_role(DATA_OWNER).post("/api/v1/dataset/register", json=WANTED)
    assert answer.status_code == 201
    number: int = answer.json()["reg_id"]
    return number


def status_of(client: TestClient) -> str:
    found = client.get("/api/v1/dataset", params={"full_name": "lake/credit.limits"}).json()
    status: str = found["status"]
    return status


def test_what_is_asked_for_is_a_draft_until_a_steward_approves(
    as_role: Callable[[str], TestClient], asked: int
) -> None:
    steward = as_role(DATA_STEWARD)
    (pending,) = steward.get("/api/v1/registrations", params={"status": "PENDING"}).json()["items"]
    assert (pending["reg_id"], pending["submitted_by"]) == (asked, "data_owner")
    assert pending["request_json"]["comment"] == "For the monthly report."
    assert status_of(steward) == "DRAFT"
    answer = steward.post(f"/api/v1/registration/{asked}/approve", json={"comment": "fine"})
    assert (answer.json()["status"], answer.json()["reviewer"]) == ("APPROVED", "data_steward")
    assert status_of(steward) == "ACTIVE"
    assert steward.get(f"/api/v1/registration/{asked}").json() == answer.json()


def test_what_is_rejected_stays_as_a_record(
    as_role: Callable[[str], TestClient], asked: int
) -> None:
    steward = as_role(DATA_STEWARD)
    steward.post(f"/api/v1/registration/{asked}/reject", json={"comment": "We have it."})
    assert status_of(steward) == "DEPRECATED"
    assert steward.get("/api/v1/registrations", params={"status": "PENDING"}).json()["items"] == []


def test_a_decision_is_made_once(as_role: Callable[[str], TestClient], asked: int) -> None:
    steward = as_role(DATA_STEWARD)
    for status in (200, 409):
        answer = steward.post(f"/api/v1/registration/{asked}/approve", json={})
        assert answer.status_code == status


def test_a_name_that_is_taken_cannot_be_asked_for(
    as_role: Callable[[str], TestClient], asked: int
) -> None:
    answer = as_role(DATA_OWNER).post("/api/v1/dataset/register", json=WANTED)
    assert answer.status_code == 409
    assert "registered already" in answer.json()["detail"]
    assert as_role(DATA_OWNER).get(f"/api/v1/registration/{asked + 1}").status_code == 404


def test_requests_come_page_by_page(as_role: Callable[[str], TestClient], asked: int) -> None:
    owner = as_role(DATA_OWNER)
    for name in ("credit.a", "credit.b"):
        owner.post("/api/v1/dataset/register", json={**WANTED, "name": name})
    first = owner.get("/api/v1/registrations", params={"limit": 2}).json()
    rest = owner.get("/api/v1/registrations", params={"cursor": first["next"]}).json()
    names = [one["full_name"] for one in first["items"] + rest["items"]]
    assert names == ["lake/credit.limits", "lake/credit.a", "lake/credit.b"]
