"""The gate: cached tokens, and blocked addresses."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from floe.api import create_app
from floe.api.errors import AddressBlockedError, UnauthorizedError
from floe.api.gate import CACHE_SECONDS, FAILURE_SECONDS, MOST_FAILURES, Failures, TokenGate
from floe.catalog.database import Catalog, Sessions
from floe.catalog.principals import (
    DATA_CONSUMER,
    PLATFORM_ADMIN,
    Identity,
    create_token,
    list_tokens,
    revoke_token,
)
from floe.clock import now


class Clock:
    """A clock that is set by the test."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def request(token: str, address: str = "192.0.2.1") -> Request:
    headers = [(b"authorization", f"Bearer {token}".encode())]
    return Request({"type": "http", "headers": headers, "client": (address, 4000)})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gate(catalog: Catalog, clock: Clock) -> Iterator[TokenGate]:
    sessions = Sessions(catalog)
    yield TokenGate(sessions, clock)
    sessions.close()


def ask(gate: TokenGate, token: str, address: str = "192.0.2.1") -> str:
    return asyncio.run(gate.identify(request(token, address))).name


def test_a_revoked_token_is_rejected_within_seconds(
    catalog: Catalog, gate: TokenGate, clock: Clock
) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_CONSUMER, actor="test")
    assert ask(gate, token.text) == "anna"
    with catalog.writing() as session:
        revoke_token(session, token.token_id, actor="test")
    assert ask(gate, token.text) == "anna"
    clock.at += CACHE_SECONDS
    with pytest.raises(Exception, match="unknown, expired or revoked"):
        ask(gate, token.text)


def test_a_cached_token_needs_no_query(catalog: Catalog, gate: TokenGate) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_CONSUMER, actor="test")
    ask(gate, token.text)
    gate._sessions = None  # type: ignore[assignment]
    assert ask(gate, token.text) == "anna"


def test_concurrent_requests_with_one_token_need_one_query(
    catalog: Catalog, gate: TokenGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_CONSUMER, actor="test")
    looked_up: list[str] = []
    find = gate._find

    def counted(sought: str) -> Identity | None:
        looked_up.append(sought)
        return find(sought)

    monkeypatch.setattr(gate, "_find", counted)

    async def come() -> list[Identity]:
        return await asyncio.gather(*(gate.identify(request(token.text)) for _ in range(5)))

    assert {identity.name for identity in asyncio.run(come())} == {"anna"}
    assert len(looked_up) == 1


def test_a_cancelled_request_does_not_affect_others(catalog: Catalog, gate: TokenGate) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_CONSUMER, actor="test")

    async def come() -> Identity:
        first = asyncio.create_task(gate.identify(request(token.text)))
        second = asyncio.create_task(gate.identify(request(token.text)))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(come()).name == "anna"


def test_a_cached_token_still_expires(
    catalog: Catalog, gate: TokenGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    with catalog.writing() as session:
        lasts = timedelta(hours=1)
        token = create_token(session, "anna", DATA_CONSUMER, actor="test", lasts=lasts)
    assert ask(gate, token.text) == "anna"
    later = now() + lasts
    monkeypatch.setattr("floe.clock.now", lambda: later)
    with pytest.raises(Exception, match="unknown, expired or revoked"):
        ask(gate, token.text)


def test_the_last_use_is_recorded_to_the_hour(catalog: Catalog, gate: TokenGate) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_CONSUMER, actor="test")
    ask(gate, token.text)
    with catalog.reading() as session:
        used = list_tokens(session)[0].last_used_at
    assert (used.minute, used.second, used.microsecond) == (0, 0, 0)


def test_many_invalid_tokens_block_their_address(
    catalog: Catalog, gate: TokenGate, clock: Clock
) -> None:
    with catalog.writing() as session:
        good = create_token(session, "anna", DATA_CONSUMER, actor="test").text
    ask(gate, good)
    for turn in range(MOST_FAILURES):
        with pytest.raises(Exception, match="unknown, expired or revoked"):
            ask(gate, f"floe_{turn}")
    with pytest.raises(AddressBlockedError) as blocked:
        ask(gate, "floe_again")
    assert 0 < blocked.value.retry_after <= FAILURE_SECONDS + 1
    # Previously valid tokens and other addresses still work.
    assert ask(gate, good) == "anna"
    with pytest.raises(Exception, match="unknown, expired or revoked"):
        ask(gate, "floe_other", address="192.0.2.2")
    clock.at += FAILURE_SECONDS
    assert ask(gate, good) == "anna"


def make_wait(gate: TokenGate) -> None:
    for turn in range(MOST_FAILURES):
        with pytest.raises(UnauthorizedError):
            ask(gate, f"floe_{turn}")


def test_a_previously_valid_token_works_while_its_address_is_blocked(
    catalog: Catalog, gate: TokenGate, clock: Clock
) -> None:
    with catalog.writing() as session:
        good = create_token(session, "anna", DATA_CONSUMER, actor="test").text
        unseen = create_token(session, "boris", DATA_CONSUMER, actor="test").text
    ask(gate, good)
    make_wait(gate)
    for _ in range(2):
        clock.at += CACHE_SECONDS
        assert ask(gate, good) == "anna"
    with pytest.raises(AddressBlockedError):
        ask(gate, unseen)


def test_a_token_revoked_while_its_address_is_blocked_is_rejected(
    catalog: Catalog, gate: TokenGate, clock: Clock
) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_CONSUMER, actor="test")
    ask(gate, token.text)
    make_wait(gate)
    with catalog.writing() as session:
        revoke_token(session, token.token_id, actor="test")
    clock.at += CACHE_SECONDS
    with pytest.raises(UnauthorizedError):
        ask(gate, token.text)
    # From now on, it is an invalid token like others, and needs no query.
    with pytest.raises(AddressBlockedError):
        ask(gate, token.text)


def test_the_token_cache_is_limited(
    catalog: Catalog, gate: TokenGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floe.api.gate.CACHE_SIZE", 2)
    with catalog.writing() as session:
        tokens = [create_token(session, name, DATA_CONSUMER, actor="test") for name in "abc"]
    for token in tokens:
        ask(gate, token.text)
    assert len(gate._cache) == 2
    make_wait(gate)
    assert ask(gate, tokens[-1].text) == "c"
    with pytest.raises(AddressBlockedError):
        ask(gate, tokens[0].text)


def test_the_list_of_failed_addresses_is_limited(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floe.api.gate.MOST_ADDRESSES", 3)
    failures = Failures(clock)
    for index in range(10):
        failures.note(f"192.0.2.{index}")
    assert len(failures._by_address) == 3


def test_an_invalid_token_error_says_how_to_create_one(anonymous: TestClient) -> None:
    for turn in range(MOST_FAILURES + 1):
        headers = {"Authorization": f"Bearer floe_{turn}"}
        answer = anonymous.get("/api/v1/me", headers=headers)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    answer = anonymous.get("/api/v1/me")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="floe"'
    assert "floe token create" in answer.json()["detail"]


@pytest.mark.parametrize("scheme", ["Basic YWRtaW46YWRtaW4=", "Bearer", "Bearer  ", "floe_x"])
def test_only_bearer_tokens_are_accepted(anonymous: TestClient, scheme: str) -> None:
    answer = anonymous.get("/api/v1/me", headers={"Authorization": scheme})
    assert answer.status_code == 401
    assert answer.json()["detail"].startswith("A token is required")


def test_without_login_everybody_on_this_machine_is_administrator(catalog: Catalog) -> None:
    app = create_app(catalog, login=False)
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:
        caller = client.get("/api/v1/me").json()
    assert (caller["name"], caller["roles"]) == ("local", [PLATFORM_ADMIN])


@pytest.mark.parametrize(
    ("base_url", "headers", "status"),
    [
        ("http://evil.example", {}, 421),
        ("http://127.0.0.1:8765", {"Origin": "http://evil.example"}, 403),
    ],
    ids=["another name for this machine", "another site's page"],
)
def test_without_login_requests_from_other_sites_are_rejected(
    catalog: Catalog, base_url: str, headers: dict[str, str], status: int
) -> None:
    with TestClient(create_app(catalog, login=False), base_url=base_url) as client:
        assert client.get("/api/v1/me", headers=headers).status_code == status
