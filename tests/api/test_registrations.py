"""Registrations: requests and decisions."""

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from floe.catalog.principals import DATA_OWNER, DATA_STEWARD, PLATFORM_ADMIN
from tests.api.night import EXPOSURE, number_of, tell

WANTED = {
    "namespace": "lake",
    "name": "credit.limits",
    "category": "credit",
    "owner_team": "Credit Risk",
    "comment": "For the monthly report.",
}


@pytest.fixture
def asked(as_role: Callable[[str], TestClient]) -> int:
    """A pending request of an owner for a dataset."""
    answer = as_role(DATA_OWNER).post("/api/v1/dataset/register", json=WANTED)
    assert answer.status_code == 201
    reg_id: int = answer.json()["reg_id"]
    return reg_id


def status_of(client: TestClient) -> str:
    dataset = client.get("/api/v1/dataset", params={"full_name": "lake/credit.limits"}).json()
    status: str = dataset["status"]
    return status


def test_a_requested_dataset_is_a_draft_until_a_steward_approves(
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


def test_a_rejected_dataset_stays_as_a_record(
    as_role: Callable[[str], TestClient], asked: int
) -> None:
    steward = as_role(DATA_STEWARD)
    steward.post(f"/api/v1/registration/{asked}/reject", json={"comment": "We have it."})
    assert status_of(steward) == "DEPRECATED"
    assert steward.get("/api/v1/registrations", params={"status": "PENDING"}).json()["items"] == []


def test_a_rejected_dataset_can_be_requested_again(
    as_role: Callable[[str], TestClient], asked: int
) -> None:
    as_role(DATA_STEWARD).post(f"/api/v1/registration/{asked}/reject", json={})
    answer = as_role(DATA_OWNER).post("/api/v1/dataset/register", json=WANTED)
    assert (answer.status_code, answer.json()["status"]) == (201, "PENDING")
    assert status_of(as_role(DATA_STEWARD)) == "DRAFT"


def test_a_dataset_from_events_gets_its_owner_on_approval(
    as_role: Callable[[str], TestClient],
) -> None:
    tell(as_role(PLATFORM_ADMIN))
    wanted = {**WANTED, "name": EXPOSURE}
    reg_id = as_role(DATA_OWNER).post("/api/v1/dataset/register", json=wanted).json()["reg_id"]
    path = "/api/v1/dataset/" + str(number_of(as_role(DATA_OWNER), EXPOSURE))
    assert as_role(DATA_OWNER).patch(path, json={"category": "x"}).status_code == 403
    as_role(DATA_STEWARD).post(f"/api/v1/registration/{reg_id}/approve", json={})
    dataset = as_role(DATA_OWNER).patch(path, json={"description": "ours"}).json()
    assert (dataset["owner_team"], dataset["category"]) == ("Credit Risk", "credit")
    again = as_role(DATA_OWNER).post("/api/v1/dataset/register", json=wanted)
    assert (again.status_code, "already registered" in again.text) == (409, True)


@pytest.mark.parametrize("verdict", ["approve", "reject"])
@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/json"}])
def test_a_decision_needs_no_comment(
    as_role: Callable[[str], TestClient], asked: int, verdict: str, headers: dict[str, str]
) -> None:
    path = f"/api/v1/registration/{asked}/{verdict}"
    answer = as_role(DATA_STEWARD).post(path, headers=headers)
    assert (answer.status_code, answer.json()["review_comment"]) == (200, None)


def test_a_decision_with_a_comment_needs_a_content_type(
    as_role: Callable[[str], TestClient], asked: int
) -> None:
    path = f"/api/v1/registration/{asked}/approve"
    for body in (b'{"comment": "fine"}', iter([b"{}"])):
        answer = as_role(DATA_STEWARD).post(path, content=body)
        assert answer.status_code == 415


def test_a_request_is_decided_only_once(as_role: Callable[[str], TestClient], asked: int) -> None:
    steward = as_role(DATA_STEWARD)
    for status in (200, 409):
        answer = steward.post(f"/api/v1/registration/{asked}/approve", json={})
        assert answer.status_code == status


def test_an_existing_name_cannot_be_requested(
    as_role: Callable[[str], TestClient], asked: int
) -> None:
    answer = as_role(DATA_OWNER).post("/api/v1/dataset/register", json=WANTED)
    assert answer.status_code == 409
    assert "already requested" in answer.json()["detail"]
    assert as_role(DATA_OWNER).get(f"/api/v1/registration/{asked + 1}").status_code == 404


def test_requests_are_listed_page_by_page(as_role: Callable[[str], TestClient], asked: int) -> None:
    owner = as_role(DATA_OWNER)
    for name in ("credit.a", "credit.b"):
        owner.post("/api/v1/dataset/register", json={**WANTED, "name": name})
    first = owner.get("/api/v1/registrations", params={"limit": 2}).json()
    rest = owner.get("/api/v1/registrations", params={"cursor": first["next"]}).json()
    names = [item["full_name"] for item in first["items"] + rest["items"]]
    assert names == ["lake/credit.limits", "lake/credit.a", "lake/credit.b"]
