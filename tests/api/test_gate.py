"""The gate: tokens that are believed for a moment, and addresses that have to wait."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from floe.api import create_app
from floe.api.errors import AddressBlockedError, UnauthorizedError
from floe.api.gate import BELIEVED_SECONDS, FAILURE_SECONDS, MOST_FAILURES, Failures, TokenGate
from floe.catalog.database import Catalog
from floe.catalog.principals import (
    DATA_CONSUMER,
    PLATFORM_ADMIN,
    Identity,
    create_token,
    list_tokens,
    revoke_token,
)
from floe.catalog.sessions import Sessions
from floe.clock import now


class Clock:
    """A clock that goes when it is told to."""

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


def test_a_revoked_token_lives_on_for_seconds_at_most(
    catalog: Catalog, gate: TokenGate, clock: Clock
) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_CONSUMER, actor="test")
    assert ask(gate, token.text) == "anna"
    with catalog.writing() as session:
        revoke_token(session, token.token_id, actor="test")
    assert ask(gate, token.text) == "anna"
    clock.at += BELIEVED_SECONDS
    with pytest.raises(Exception, match="unknown, expired or revoked"):
        ask(gate, token.text)


def test_a_believed_token_costs_no_query(catalog: Catalog, gate: TokenGate) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_CONSUMER, actor="test")
    ask(gate, token.text)
    gate._sessions = None  # type: ignore[assignment]
    assert ask(gate, token.text) == "anna"


def test_those_who_come_at_once_with_one_token_are_looked_up_once(
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


def test_one_who_goes_away_takes_the_answer_from_nobody(catalog: Catalog, gate: TokenGate) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_CONSUMER, actor="test")

    async def come() -> Identity:
        first = asyncio.create_task(gate.identify(request(token.text)))
        second = asyncio.create_task(gate.identify(request(token.text)))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(come()).name == "anna"


def test_a_believed_token_still_expires(
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


def test_the_last_use_is_noted_to_the_hour(catalog: Catalog, gate: TokenGate) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_CONSUMER, actor="test")
    ask(gate, token.text)
    with catalog.reading() as session:
        used = list_tokens(session)[0].last_used_at
    assert (used.minute, used.second, used.microsecond) == (0, 0, 0)


def test_many_wrong_tokens_from_one_address_make_it_wait(
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
    # A token that is known to be good goes on working, and other addresses do.
    assert ask(gate, good) == "anna"
    with pytest.raises(Exception, match="unknown, expired or revoked"):
        ask(gate, "floe_other", address="192.0.2.2")
    clock.at += FAILURE_SECONDS
    assert ask(gate, good) == "anna"


def make_wait(gate: TokenGate) -> None:
    for turn in range(MOST_FAILURES):
        with pytest.raises(UnauthorizedError):
            ask(gate, f"floe_{turn}")


def test_a_token_that_was_good_before_is_let_in_while_its_address_waits(
    catalog: Catalog, gate: TokenGate, clock: Clock
) -> None:
    with catalog.writing() as session:
        good = create_token(session, "anna", DATA_CONSUMER, actor="test").text
        unseen = create_token(session, "boris", DATA_CONSUMER, actor="test").text
    ask(gate, good)
    make_wait(gate)
    for _ in range(2):
        clock.at += BELIEVED_SECONDS
        assert ask(gate, good) == "anna"
    with pytest.raises(AddressBlockedError):
        ask(gate, unseen)


def test_a_token_that_is_revoked_while_its_address_waits_dies_all_the_same(
    catalog: Catalog, gate: TokenGate, clock: Clock
) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_CONSUMER, actor="test")
    ask(gate, token.text)
    make_wait(gate)
    with catalog.writing() as session:
        revoke_token(session, token.token_id, actor="test")
    clock.at += BELIEVED_SECONDS
    with pytest.raises(UnauthorizedError):
        ask(gate, token.text)
    # From here on it is a wrong one among others, and costs no query.
    with pytest.raises(AddressBlockedError):
        ask(gate, token.text)


def test_the_tokens_that_were_good_do_not_fill_the_memory(
    catalog: Catalog, gate: TokenGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floe.api.gate.MOST_BELIEVED", 2)
    with catalog.writing() as session:
        made = [create_token(session, name, DATA_CONSUMER, actor="test") for name in "abc"]
    for token in made:
        ask(gate, token.text)
    assert len(gate._believed) == 2
    make_wait(gate)
    assert ask(gate, made[-1].text) == "c"
    with pytest.raises(AddressBlockedError):
        ask(gate, made[0].text)


def test_the_addresses_that_failed_do_not_fill_the_memory(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floe.api.gate.MOST_ADDRESSES", 3)
    failures = Failures(clock)
    for number in range(10):
        failures.note(f"192.0.2.{number}")
    assert len(failures._by_address) == 3


def test_a_wrong_token_is_told_how_to_get_a_right_one(anonymous: TestClient) -> None:
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
def test_anything_but_a_bearer_token_is_none(anonymous: TestClient, scheme: str) -> None:
    answer = anonymous.get("/api/v1/me", headers={"Authorization": scheme})
    assert answer.status_code == 401
    assert answer.json()["detail"].startswith("A token is needed")


def test_without_login_this_machine_is_its_own_administrator(catalog: Catalog) -> None:
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
def test_without_login_no_other_site_can_use_the_browser_to_get_in(
    catalog: Catalog, base_url: str, headers: dict[str, str], status: int
) -> None:
    with TestClient(create_app(catalog, login=False), base_url=base_url) as client:
        assert client.get("/api/v1/me", headers=headers).status_code == status
