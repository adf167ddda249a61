"""Permissions: every route with every role, and the page that documents them."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from floe.api.access import PERMISSIONS, Rule
from floe.api.app import _assemble
from floe.api.routes import ROUTERS
from floe.catalog.database import Catalog
from floe.catalog.logins import create_link, list_sessions
from floe.catalog.principals import (
    DATA_CONSUMER,
    DATA_OWNER,
    INGEST,
    PLATFORM_ADMIN,
    ROLES,
    SCOPE_READ,
    create_token,
    hash_token,
    revoke_token,
)
from tests.api.conftest import TEAM
from tests.api.night import EXPOSURE, POSITIONS, event, newest_version, number_of, tell

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "access.md"


class Call(NamedTuple):
    """A request that succeeds if the caller has permission."""

    method: str
    path: str
    body: Any = None


ASK_FOR = {"namespace": "lake", "name": "credit.new"}
BODIES: dict[str, Any] = {
    "send_event": event(),
    "send_run_event": event(),
    "send_batch": [event()],
    "register_dataset": {"dataset_name": "a.b"},
    "register_process": {"process_name": "A/B", "status": "STARTED"},
    "update_dataset": {"description": "Exposures by counterparty."},
    "retract_version": {"reason": "wrong rates"},
    "submit_registration": ASK_FOR,
    "open_session": {"link": "unknown"},
    "approve_registration": {},
    "reject_registration": {},
    "split_dataset": {"full_name": f"lake/{POSITIONS}"},
}
QUERIES = {
    "find_dataset": f"full_name={EXPOSURE}",
    "find_dataset_lineage": f"full_name={EXPOSURE}",
    "find_process": "process_key=AUTOSYS/BOX/COMPUTE",
    "find_process_lineage": "process_key=AUTOSYS/BOX/COMPUTE",
    "find_version": "tag=2026-09-01.1",
    "diff_schemas": "before=2026-09-01.1&after=2026-09-01.1",
}


def routes() -> Iterator[APIRoute]:
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            yield route


ACTIONS = {str(route.operation_id): route for route in routes()}


def call_of(action: str, numbers: dict[str, Any]) -> Call:
    route = ACTIONS[action]
    path = route.path.format(**numbers)
    query = QUERIES.get(action)
    method = method_of(route)
    return Call(method, f"{path}?{query}" if query else path, BODIES.get(action))


def method_of(route: APIRoute) -> str:
    return "".join(route.methods or ())


def make(client: TestClient, call: Call) -> int:
    return client.request(call.method, call.path, json=call.body).status_code


def add_session(catalog: Catalog) -> int:
    """Add a login link; return its session id."""
    with catalog.writing() as session:
        create_link(session, "data_consumer", actor="test")
        return int(max(row.session_id for row in list_sessions(session)))


@pytest.fixture
def numbers(catalog: Catalog, admin: TestClient) -> dict[str, Any]:
    """The values of path parameters: a dataset of the owner's team, and related ids."""
    tell(admin)
    dataset_id = number_of(admin, EXPOSURE)
    admin.patch(f"/api/v1/dataset/{dataset_id}", json={"owner_team": TEAM})
    # Both are curated, so that an event that says they are the same is a claim.
    admin.patch(f"/api/v1/dataset/{number_of(admin, POSITIONS)}", json={"category": "credit"})
    linking = event(day="2026-09-02")
    names = {"identifiers": [{"namespace": "lake", "name": POSITIONS}]}
    linking["outputs"][0]["facets"]["symlinks"] = names
    admin.post("/api/v1/lineage", json=linking)
    (claim,) = admin.get("/api/v1/drift/claims").json()["items"]
    registration = admin.post("/api/v1/dataset/register", json={**ASK_FOR, "name": "credit.asked"})
    return {
        "dataset_id": dataset_id,
        "version_id": newest_version(admin, EXPOSURE)["dataset_version_id"],
        "process_id": 1,
        "run_uuid": event()["run"]["runId"],
        "event_id": 1,
        "reg_id": registration.json()["reg_id"],
        "session_id": add_session(catalog),
        "claim_id": claim["claim_id"],
    }


def may(role: str, rule: Rule) -> bool:
    return role in rule.everywhere | rule.own


def test_every_route_has_its_rule_and_every_rule_its_route() -> None:
    assert set(ACTIONS) == set(PERMISSIONS)


def test_a_route_without_a_rule_cannot_be_built() -> None:
    app = _assemble(None)
    route_class = type(next(routes()))
    with pytest.raises(KeyError, match="unheard_of"):
        app.router.routes.append(route_class("/x", lambda request: None, operation_id="unheard_of"))


@pytest.mark.parametrize("role", ROLES)
def test_every_role_may_do_what_the_table_says_and_nothing_else(
    as_role: Callable[[str], TestClient], numbers: dict[str, Any], role: str
) -> None:
    client = as_role(role)
    # Changes to the dataset come last, so that the other requests find it unchanged.
    changing = [
        "retract_version",
        "approve_registration",
        "reject_registration",
        "accept_drift_claim",
        "split_dataset",
    ]
    order = {action: index for index, action in enumerate(changing)}
    # A claim is decided only once, and an accepted one disappears with the join.
    actions = [action for action in ACTIONS if action != "dismiss_drift_claim"]
    for action in sorted(actions, key=lambda name: order.get(name, -1)):
        rule = PERMISSIONS[action]
        status = make(client, call_of(action, numbers))
        if action == "open_session":
            assert status == 401
        elif rule.public or may(role, rule):
            assert status in (200, 201, 204, 409), (action, status)
        else:
            assert status == 403, (action, status)


@pytest.mark.usefixtures("numbers")
def test_without_a_token_only_public_routes_are_accessible(
    anonymous: TestClient, numbers: dict[str, Any]
) -> None:
    del anonymous.headers["Authorization"]
    for action in ACTIONS:
        is_open = PERMISSIONS[action].public and action != "open_session"
        expected = 200 if is_open else 401
        answer = make(anonymous, call_of(action, numbers))
        assert answer == expected, action


@pytest.mark.parametrize("kind", ["unknown", "expired", "revoked", "disabled"])
def test_an_invalid_token_is_rejected(catalog: Catalog, anonymous: TestClient, kind: str) -> None:
    with catalog.writing() as session:
        lasts = timedelta(seconds=-1) if kind == "expired" else None
        token = create_token(session, "late", PLATFORM_ADMIN, actor="test", lasts=lasts)
        if kind == "revoked":
            revoke_token(session, token.token_id, actor="test")
        if kind == "disabled":
            from floe.catalog.tables import Principal

            session.query(Principal).update({"disabled_at": Principal.created_at})
    text = "floe_nonsense" if kind == "unknown" else token.text
    anonymous.headers["Authorization"] = f"Bearer {text}"
    for action, rule in PERMISSIONS.items():
        if rule.public:
            continue
        path = ACTIONS[action].path.replace("{", "").replace("}", "")
        # After ten invalid tokens, the address is blocked.
        status = make(anonymous, Call(method_of(ACTIONS[action]), path))
        assert status in (401, 429), action


def test_an_owner_changes_what_its_team_owns_and_nothing_else(
    as_role: Callable[[str], TestClient], numbers: dict[str, Any]
) -> None:
    client = as_role(DATA_OWNER)
    foreign = number_of(client, POSITIONS)
    version = newest_version(client, POSITIONS)["dataset_version_id"]
    change, reason = {"description": "mine"}, {"reason": "wrong"}
    assert client.patch(f"/api/v1/dataset/{foreign}", json=change).status_code == 403
    assert client.post(f"/api/v1/version/{version}/retract", json=reason).status_code == 403
    own = f"/api/v1/dataset/{numbers['dataset_id']}"
    assert client.patch(own, json=change).json()["description"] == "mine"
    taken_back = client.post(f"/api/v1/version/{numbers['version_id']}/retract", json=reason)
    assert taken_back.status_code == 200


def test_an_owner_is_recognized_by_email_too(
    catalog: Catalog, admin: TestClient, numbers: dict[str, Any]
) -> None:
    address, path = "anna@example.com", f"/api/v1/dataset/{numbers['dataset_id']}"
    admin.patch(path, json={"owner_email": address, "owner_team": None})
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_OWNER, actor="test", email=address)
    headers = {"Authorization": f"Bearer {token.text}"}
    assert admin.patch(path, json={"description": "x"}, headers=headers).status_code == 200


def test_a_read_token_can_only_read_whatever_its_role(
    catalog: Catalog, admin: TestClient, numbers: dict[str, Any]
) -> None:
    with catalog.writing() as session:
        token = create_token(session, "board", PLATFORM_ADMIN, actor="test", scopes=[SCOPE_READ])
    headers = {"Authorization": f"Bearer {token.text}"}
    path = f"/api/v1/dataset/{numbers['dataset_id']}"
    assert admin.get(path, headers=headers).status_code == 200
    assert admin.patch(path, json={"description": "x"}, headers=headers).status_code == 403
    assert admin.post("/api/v1/lineage", json=event(), headers=headers).status_code == 403


def test_a_forbidden_error_names_the_required_roles(
    as_role: Callable[[str], TestClient], numbers: dict[str, Any]
) -> None:
    client = as_role(DATA_CONSUMER)
    answer = client.post(f"/api/v1/version/{numbers['version_id']}/retract", json={"reason": "x"})
    assert answer.json()["detail"] == (
        "'data_consumer' may not retract version. "
        "Required role: DATA_STEWARD or PLATFORM_ADMIN or DATA_OWNER of the dataset."
    )


def test_every_change_is_in_the_audit_log_with_actor_and_values(
    as_role: Callable[[str], TestClient], numbers: dict[str, Any]
) -> None:
    owner = as_role(DATA_OWNER)
    owner.patch(f"/api/v1/dataset/{numbers['dataset_id']}", json={"description": "new"})
    owner.post(f"/api/v1/version/{numbers['version_id']}/retract", json={"reason": "wrong"})
    steward = as_role("DATA_STEWARD")
    steward.post(f"/api/v1/registration/{numbers['reg_id']}/approve", json={"comment": "fine"})
    newest = [
        (
            entry["actor"],
            entry["action"],
            entry["before_json"],
            entry["after_json"],
            entry["reason"],
        )
        for entry in steward.get("/api/v1/audit?limit=4").json()["items"]
    ]
    assert newest == [
        (
            "data_steward",
            "registration.approve",
            {"status": "PENDING"},
            {"status": "APPROVED", "dataset": "lake/credit.asked"},
            "fine",
        ),
        ("data_steward", "dataset.update", {"status": "DRAFT"}, {"status": "ACTIVE"}, None),
        (
            "data_owner",
            "version.retract",
            {"state": "READY"},
            {"state": "RETRACTED", "ready_again": None},
            "wrong",
        ),
        ("data_owner", "dataset.update", {"description": None}, {"description": "new"}, None),
    ]


def test_requests_without_changes_are_not_in_the_audit_log(
    as_role: Callable[[str], TestClient], numbers: dict[str, Any]
) -> None:
    steward = as_role("DATA_STEWARD")
    path = f"/api/v1/dataset/{numbers['dataset_id']}"
    known = steward.get("/api/v1/audit").json()
    unchanged: list[dict[str, Any]] = [{}, {"owner_team": TEAM}, {"tags": []}]
    for nothing in unchanged:
        assert steward.patch(path, json=nothing).status_code == 200
    assert steward.get("/api/v1/audit").json() == known
    steward.patch(path, json={"owner_team": TEAM, "tags": ["b", "a"]})
    newest = steward.get("/api/v1/audit").json()["items"][0]
    assert (newest["before_json"], newest["after_json"]) == ({"tags": []}, {"tags": ["a", "b"]})


def test_a_job_host_cannot_take_a_dataset_from_its_owner(
    as_role: Callable[[str], TestClient], numbers: dict[str, Any]
) -> None:
    claim = event(day="2026-09-02")
    claim["outputs"][0]["facets"]["ownership"] = {"owners": [{"name": "team:Thieves"}]}
    claim["outputs"][0]["facets"]["documentation"] = {"description": "ours"}
    assert as_role(INGEST).post("/api/v1/lineage", json=claim).status_code == 201
    dataset = as_role(DATA_OWNER).get(f"/api/v1/dataset/{numbers['dataset_id']}").json()
    assert (dataset["owner_team"], dataset["description"], dataset["curated"]) == (TEAM, None, True)


def test_a_job_host_can_send_but_not_read(as_role: Callable[[str], TestClient]) -> None:
    host = as_role(INGEST)
    assert host.post("/api/v1/lineage", json=event()).status_code == 201
    assert host.get("/api/v1/datasets").status_code == 403
    assert host.get("/api/v1/me").json()["roles"] == [INGEST]


def test_only_the_hash_of_a_token_is_stored(catalog: Catalog, tokens: dict[str, str]) -> None:
    dump = Path(str(catalog.engine.url.database)).read_bytes()
    wal = Path(f"{catalog.engine.url.database}-wal")
    dump += wal.read_bytes() if wal.exists() else b""
    for text in tokens.values():
        assert text.encode() not in dump
        assert hash_token(text).encode() in dump


def test_the_page_about_access_shows_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    shown = {action: tuple(cells.split(" | ")) for action, cells in rows}
    assert shown == {action: table_row(action) for action in PERMISSIONS}


def table_row(action: str) -> tuple[str, ...]:
    """The row of an action on the page."""
    rule, route = PERMISSIONS[action], ACTIONS[action]
    asked = f"{method_of(route)} {route.path}"
    if rule.public:
        return (asked, *("everybody",) * len(ROLES))
    return (
        asked,
        *("yes" if r in rule.everywhere else "own" if r in rule.own else "–" for r in ROLES),
    )
