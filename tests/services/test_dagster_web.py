"""The guard around the real Dagster web app: who is let in, from where, and who may change."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from floe.api.gate import TokenGate
from floe.api.hosts import Hosts
from floe.catalog.database import Catalog, Sessions, open_catalog
from floe.catalog.logins import create_link, revoke_session
from floe.catalog.principals import (
    DATA_CONSUMER,
    DATA_OWNER,
    DATA_STEWARD,
    INGEST,
    PLATFORM_ADMIN,
    ROLES,
    create_token,
)
from floe.orchestration.webserver import open_web_app
from floe.services import dagster_web
from floe.services.dagster_web import Guard

HERE = "http://127.0.0.1:3000"
SOCKET = "ws://127.0.0.1:3000/graphql"
SECRET = "the secret of this start"
PAUSE = "mutation { setAutoMaterializePaused(paused: true) }"
PAUSED = "{ instance { autoMaterializePaused } }"
SUBSCRIBE = "subscription { locationStateChangeEvents { event { message } } }"


@pytest.fixture(scope="module")
def dagster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    home = tmp_path_factory.mktemp("home")
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (home / "workspace.yaml").write_text("load_from: []\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(home))
        with open_web_app(home / "workspace.yaml") as app:
            yield app


@pytest.fixture
def catalog(sqlite_template: Path, tmp_path: Path) -> Iterator[Catalog]:
    copy = tmp_path / "catalog.db"
    shutil.copyfile(sqlite_template, copy)
    catalog = open_catalog(f"sqlite:///{copy}")
    yield catalog
    catalog.close()


@pytest.fixture
def tokens(catalog: Catalog) -> dict[str, str]:
    with catalog.writing() as session:
        return {
            role: create_token(session, role.lower(), role, actor="test").text for role in ROLES
        }


@pytest.fixture
def client(dagster: Any, catalog: Catalog, tokens: dict[str, str]) -> Iterator[TestClient]:
    sessions, hosts = Sessions(catalog), Hosts.of("https://dagster.bank.example")
    guarded = Guard(dagster, TokenGate(sessions, hosts=hosts), hosts, SECRET)
    with TestClient(guarded, HERE, follow_redirects=False) as client:
        yield client
    sessions.close()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def log_in(client: TestClient, catalog: Catalog, name: str, url: str = HERE) -> int:
    with catalog.writing() as session:
        link = create_link(session, name, actor="test")
    answer = client.post(f"{url}/api/v1/session", json={"link": link})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["session_id"])


def is_paused(client: TestClient) -> bool:
    answer = client.post("/graphql", json={"query": PAUSED}, headers=bearer(SECRET))
    return bool(answer.json()["data"]["instance"]["autoMaterializePaused"])


@pytest.fixture(autouse=True)
def unpaused(client: TestClient) -> None:
    query = PAUSE.replace("true", "false")
    assert client.post("/graphql", json={"query": query}, headers=bearer(SECRET)).is_success
    assert not is_paused(client)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/runs"),
        ("GET", "/graphql"),
        ("GET", "/server_info"),
        ("GET", "/favicon.png"),
        ("GET", "/logs/a/b"),
        ("GET", "/download_debug/1"),
        ("HEAD", "/"),
        ("OPTIONS", "/graphql"),
        ("POST", "/graphql"),
        ("POST", "/report_asset_materialization/a"),
        ("PUT", "/graphql"),
        ("DELETE", "/api/v1/session"),
    ],
)
def test_nobody_is_let_in_without_a_session_or_a_token(
    client: TestClient, method: str, path: str
) -> None:
    assert client.request(method, path).status_code == 401
    assert client.request(method, path, headers=bearer("floe_wrong")).status_code in (401, 429)


@pytest.mark.parametrize("who", ["nobody", "token", "secret", "cookie"])
def test_no_mutation_goes_by_get(
    client: TestClient, catalog: Catalog, tokens: dict[str, str], who: str
) -> None:
    headers = {}
    if who == "cookie":
        log_in(client, catalog, "platform_admin")
    elif who != "nobody":
        headers = bearer(SECRET if who == "secret" else tokens[PLATFORM_ADMIN])
    for accepted in ("*/*", "text/html", "application/json"):
        for method in ("GET", "HEAD"):
            sent = {**headers, "Accept": accepted}
            answer = client.request(method, "/graphql", params={"query": PAUSE}, headers=sent)
            assert answer.status_code == (401 if who == "nobody" else 405)
    assert not is_paused(client)


@pytest.mark.parametrize("content_type", ["text/plain", "application/graphql", None])
def test_no_mutation_goes_by_a_body_that_a_form_can_send(
    client: TestClient, tokens: dict[str, str], content_type: str | None
) -> None:
    headers = bearer(tokens[PLATFORM_ADMIN])
    if content_type is not None:
        headers["Content-Type"] = content_type
    answer = client.post("/graphql", params={"query": PAUSE}, content=PAUSE, headers=headers)
    assert answer.status_code == 415
    assert not is_paused(client)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:3000", "127.0.0.1.evil.example", "localhost.evil.example", ""],
)
def test_a_foreign_name_for_this_machine_gets_nothing(
    client: TestClient, tokens: dict[str, str], host: str
) -> None:
    headers = {**bearer(tokens[PLATFORM_ADMIN]), "Host": host}
    assert client.get("/login", headers=headers).status_code == 421
    assert client.post("/graphql", json={"query": PAUSE}, headers=headers).status_code == 421
    assert client.post("/api/v1/session", json={}, headers=headers).status_code == 421
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(SOCKET, headers=headers):
        pass
    assert not is_paused(client)


def test_a_link_becomes_a_cookie_that_no_script_can_read(
    client: TestClient, catalog: Catalog
) -> None:
    page = client.get("/runs", headers={"Accept": "text/html"})
    assert (page.status_code, "Log in to floe" in page.text) == (401, True)
    log_in(client, catalog, "platform_admin")
    answer = client.get("/runs", headers={"Accept": "text/html"})
    assert (answer.status_code, "Log in to floe" in answer.text) == (200, False)
    assert answer.headers["x-frame-options"] == "DENY"
    answer = client.request("DELETE", "/api/v1/session", headers={"Origin": HERE})
    assert answer.status_code == 204
    assert client.get("/runs").status_code == 401


def test_the_cookie_is_secure_where_the_browser_comes_by_https(
    client: TestClient, catalog: Catalog
) -> None:
    for url, secure in ((HERE, False), ("http://dagster.bank.example", True)):
        with catalog.writing() as session:
            link = create_link(session, "platform_admin", actor="test")
        origin = url.replace("http://dagster", "https://dagster")
        headers = {"Origin": origin}
        answer = client.post(f"{url}/api/v1/session", json={"link": link}, headers=headers)
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert "path=/" in cookie
        assert ("secure" in cookie) == secure


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"Origin": HERE}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({}, False),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "http://127.0.0.1:9999"}, False),
        ({"Origin": "https://127.0.0.1:3000"}, False),
        ({"Origin": "null"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, False),
    ],
)
def test_with_a_cookie_only_the_servers_own_pages_may_act(
    client: TestClient, catalog: Catalog, headers: dict[str, str], allowed: bool
) -> None:
    log_in(client, catalog, "platform_admin")
    answer = client.post("/graphql", json={"query": PAUSE}, headers=headers)
    assert answer.status_code == (200 if allowed else 403)
    assert is_paused(client) == allowed


@pytest.mark.parametrize(
    ("role", "sees", "changes"),
    [
        (PLATFORM_ADMIN, True, True),
        (DATA_STEWARD, True, True),
        (DATA_OWNER, True, False),
        (DATA_CONSUMER, True, False),
        (INGEST, False, False),
    ],
)
def test_roles_say_who_sees_and_who_changes(
    client: TestClient, tokens: dict[str, str], role: str, sees: bool, changes: bool
) -> None:
    headers = bearer(tokens[role])
    answer = client.post("/graphql", json={"query": PAUSED}, headers=headers)
    assert answer.status_code == (200 if sees else 403)
    several = f"query a {PAUSED} mutation b {{ setAutoMaterializePaused(paused: true) }}"
    for body in (
        {"query": PAUSE},
        {"query": several, "operationName": "b"},
    ):
        answer = client.post("/graphql", json=body, headers=headers)
        assert answer.status_code == (200 if changes else 403)
    assert is_paused(client) == changes
    report = client.post("/report_asset_materialization/a", json={}, headers=headers)
    assert report.is_success == changes
    assert changes or report.status_code == 403
    assert client.get("/server_info", headers=headers).is_success == sees


def test_dagster_itself_knows_who_may_only_look(client: TestClient, tokens: dict[str, str]) -> None:
    query = {"query": "{ permissions { permission value } }"}
    for role, allowed in ((DATA_CONSUMER, False), (DATA_STEWARD, True)):
        answer = client.post("/graphql", json=query, headers=bearer(tokens[role]))
        permissions = {
            one["permission"]: one["value"] for one in answer.json()["data"]["permissions"]
        }
        assert permissions["launch_pipeline_execution"] == allowed


@pytest.mark.parametrize("body", ["[]", "{}", '{"query": 1}', "nonsense", "[" * 100_000])
def test_a_body_that_is_no_query_is_refused(
    client: TestClient, tokens: dict[str, str], body: str
) -> None:
    headers = {**bearer(tokens[DATA_CONSUMER]), "Content-Type": "application/json"}
    assert client.post("/graphql", content=body, headers=headers).status_code == 400


def test_a_revoked_session_is_refused(
    client: TestClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floe.api.gate.CACHE_SECONDS", 0.0)
    session_id = log_in(client, catalog, "platform_admin")
    assert client.get("/server_info").status_code == 200
    with catalog.writing() as session:
        revoke_session(session, session_id, actor="test")
    assert client.get("/server_info").status_code == 401


def subscribe(client: TestClient, query: str, **headers: str) -> dict[str, Any]:
    """Open a WebSocket as Dagster's page does; return the answer to a query."""
    with client.websocket_connect(SOCKET, ["graphql-ws"], headers=headers) as socket:
        socket.send_json({"type": "connection_init"})
        assert socket.receive_json() == {"type": "connection_ack"}
        socket.send_json({"type": "start", "id": "1", "payload": {"query": query}})
        socket.send_json({"type": "start", "id": "2", "payload": {"query": "{ nonsense }"}})
        answer: dict[str, Any] = socket.receive_json()
        return answer


def test_a_page_of_dagster_subscribes(client: TestClient, catalog: Catalog) -> None:
    log_in(client, catalog, "data_consumer")
    # The subscription is silent, so the first answer is the error of the second query.
    assert subscribe(client, SUBSCRIBE, Origin=HERE)["id"] == "2"


@pytest.mark.parametrize("origin", [None, "http://evil.example", "http://127.0.0.1:9999"])
def test_no_other_page_opens_a_socket(
    client: TestClient, catalog: Catalog, origin: str | None
) -> None:
    log_in(client, catalog, "platform_admin")
    headers = {} if origin is None else {"Origin": origin}
    with pytest.raises(WebSocketDisconnect):
        subscribe(client, SUBSCRIBE, **headers)


def test_a_socket_takes_no_mutation(client: TestClient, tokens: dict[str, str]) -> None:
    for role in (PLATFORM_ADMIN, DATA_CONSUMER):
        assert subscribe(client, PAUSE, **bearer(tokens[role]))["type"] == "error"
    with pytest.raises(WebSocketDisconnect):
        subscribe(client, SUBSCRIBE, **bearer("floe_wrong"))
    assert not is_paused(client)


def test_a_socket_is_closed_when_its_session_ends(
    client: TestClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floe.api.gate.CACHE_SECONDS", 0.0)
    monkeypatch.setattr(dagster_web, "RECHECK_SECONDS", 0.05)
    session_id = log_in(client, catalog, "platform_admin")
    with client.websocket_connect(SOCKET, ["graphql-ws"], headers={"Origin": HERE}) as socket:
        socket.send_json({"type": "connection_init"})
        assert socket.receive_json() == {"type": "connection_ack"}
        with catalog.writing() as session:
            revoke_session(session, session_id, actor="test")
        with pytest.raises(WebSocketDisconnect):
            socket.receive_json()
