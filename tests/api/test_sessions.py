"""Sessions over HTTP: log in, same-origin checks, log out, revoke."""

import pytest
from starlette.testclient import TestClient

from floe.api.hosts import Hosts
from floe.api.login import PAGE
from floe.catalog.audit import list_audit
from floe.catalog.database import Catalog
from floe.catalog.logins import create_link

HERE = "http://127.0.0.1"
ASKED = {"namespace": "lake", "name": "credit.new"}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floe.api.gate.CACHE_SECONDS", 0.0)


def make_link(catalog: Catalog, name: str) -> str:
    with catalog.writing() as session:
        return create_link(session, name, actor="test")


@pytest.fixture
def browser(anonymous: TestClient, catalog: Catalog, tokens: dict[str, str]) -> TestClient:
    """A browser in which the administrator is logged in."""
    assert tokens
    link = make_link(catalog, "platform_admin")
    assert anonymous.post("/api/v1/session", json={"link": link}).status_code == 201
    return anonymous


def test_a_browser_is_authenticated_by_its_cookie(browser: TestClient) -> None:
    assert browser.get("/api/v1/me").json()["name"] == "platform_admin"
    page = browser.get("/login")
    assert (page.status_code, page.text) == (200, PAGE)
    assert page.headers.get_list("content-security-policy") == [
        page.headers["content-security-policy"]
    ]
    assert "script-src 'sha256-" in page.headers["content-security-policy"]


def test_a_token_opens_a_session_too(anonymous: TestClient, tokens: dict[str, str]) -> None:
    answer = anonymous.post("/api/v1/session", json={"token": tokens["DATA_OWNER"]})
    assert answer.json()["name"] == "data_owner"
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert anonymous.get("/api/v1/me").json()["roles"] == ["DATA_OWNER"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": HERE}, 201),
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": f"{HERE}:9999"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_with_a_cookie_only_the_apis_own_pages_change_anything(
    browser: TestClient, headers: dict[str, str], status: int
) -> None:
    answer = browser.post("/api/v1/dataset/register", json=ASKED, headers=headers)
    assert answer.status_code == status


def test_a_foreign_page_cannot_log_a_browser_in(
    anonymous: TestClient, catalog: Catalog, tokens: dict[str, str]
) -> None:
    assert tokens
    link = make_link(catalog, "data_consumer")
    foreign = {"Origin": "http://evil.example"}
    assert (
        anonymous.post("/api/v1/session", json={"link": link}, headers=foreign).status_code == 403
    )


def test_logging_out_ends_the_session(browser: TestClient) -> None:
    cookies = dict(browser.cookies)
    assert browser.delete("/api/v1/session", headers={"Origin": HERE}).status_code == 204
    assert not browser.cookies
    browser.cookies.update(cookies)
    assert browser.get("/api/v1/me").status_code == 401


def test_an_administrator_can_list_and_revoke_sessions(
    browser: TestClient, catalog: Catalog, tokens: dict[str, str]
) -> None:
    admin = {"Authorization": f"Bearer {tokens['PLATFORM_ADMIN']}"}
    (item,) = browser.get("/api/v1/sessions", headers=admin).json()["items"]
    assert (item["name"], item["browser"]) == ("platform_admin", "testclient")
    path = f"/api/v1/session/{item['session_id']}"
    assert browser.delete(path, headers=admin).status_code == 204
    assert browser.delete("/api/v1/session/999", headers=admin).status_code == 404
    assert browser.get("/api/v1/me").status_code == 401
    with catalog.reading() as session:
        newest = list_audit(session, object_type="SESSION")[0]
    assert (newest.actor, newest.action) == ("platform_admin", "session.revoke")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"link": "a", "token": "b"}, 422),
        ({"link": 5}, 422),
        ({"link": "unknown"}, 401),
        ({"token": "floe_unknown"}, 401),
        ({"link": "x" * 20_000}, 413),
    ],
)
def test_invalid_credentials_are_rejected_with_the_reason(
    anonymous: TestClient, body: dict[str, object], status: int
) -> None:
    assert anonymous.post("/api/v1/session", json=body).status_code == status


def test_guessing_links_is_stopped(anonymous: TestClient) -> None:
    for _ in range(10):
        assert anonymous.post("/api/v1/session", json={"link": "guess"}).status_code == 401
    assert anonymous.post("/api/v1/session", json={"link": "guess"}).status_code == 429


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("localhost", True),
        ("LOCALHOST:8765", True),
        ("127.0.0.1:8765", True),
        ("[::1]:8765", True),
        ("192.0.2.7:8765", True),
        ("floe.bank.example", True),
        ("Floe.Bank.Example:443", True),
        ("", False),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("evil.example/127.0.0.1", False),
        ("user@127.0.0.1", False),
        ("127.0.0.1:port", False),
        ("[::1", False),
    ],
)
def test_a_server_accepts_its_own_names(host: str, known: bool) -> None:
    assert Hosts.of("https://floe.bank.example/floe", None).knows(host) == known


@pytest.mark.parametrize("path", ["/", "/login", "/api/v1/health", "/api/v1/me"])
def test_a_foreign_host_name_is_rejected(browser: TestClient, path: str) -> None:
    answer = browser.get(path, headers={"Host": "evil.example"})
    assert answer.status_code == 421
    assert "not a name of this server" in answer.json()["detail"]


def test_an_event_with_a_foreign_host_name_is_rejected_on_the_fast_path(
    admin: TestClient,
) -> None:
    admin.get("/api/v1/me")
    answer = admin.post("/api/v1/lineage", json={}, headers={"Host": "evil.example"})
    assert answer.status_code == 421
