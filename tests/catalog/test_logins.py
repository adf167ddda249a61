"""Sessions: opened by a link that works once or by a token, expiring, revocable, audited."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import select

from floe import clock
from floe.catalog.audit import list_audit
from floe.catalog.database import Catalog
from floe.catalog.logins import (
    LINK_LASTS,
    SESSION_LASTS,
    NewSession,
    SessionNotFoundError,
    UnknownPrincipalError,
    create_link,
    find_session,
    list_sessions,
    open_by_link,
    open_by_token,
    revoke_session,
    touch_session,
)
from floe.catalog.principals import (
    DATA_CONSUMER,
    SCOPE_READ,
    create_token,
    find_token,
    hash_token,
    revoke_token,
)
from floe.catalog.tables import LoginSession, Principal


@pytest.fixture(autouse=True)
def anna(catalog: Catalog) -> None:
    with catalog.writing() as session:
        create_token(session, "anna", DATA_CONSUMER, actor="test")


def make_link(catalog: Catalog) -> str:
    with catalog.writing() as session:
        return create_link(session, "anna", actor="root")


def open_link(catalog: Catalog, link: str) -> NewSession | None:
    with catalog.writing() as session:
        return open_by_link(session, link, "Firefox" * 100)


def is_valid(catalog: Catalog, secret: str, *, after: timedelta = timedelta()) -> bool:
    with catalog.reading() as session:
        return find_session(session, hash_token(secret), clock.now() + after) is not None


def test_a_link_opens_one_session(catalog: Catalog) -> None:
    link = make_link(catalog)
    assert not is_valid(catalog, link)
    opened = open_link(catalog, link)
    assert opened is not None
    assert open_link(catalog, link) is None
    assert not is_valid(catalog, link)
    with catalog.reading() as session:
        known_session = find_session(session, hash_token(opened.secret), clock.now())
    assert known_session is not None
    assert (known_session.identity.name, known_session.identity.roles) == (
        "anna",
        frozenset({DATA_CONSUMER}),
    )
    assert known_session.identity.session_id == opened.session_id
    assert open_link(catalog, opened.secret) is None


def test_if_several_browsers_open_a_link_at_once_only_one_gets_a_session(catalog: Catalog) -> None:
    link = make_link(catalog)
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda _: open_link(catalog, link), range(4)))
    assert sum(result is not None for result in opened) == 1


def test_links_and_sessions_expire(catalog: Catalog) -> None:
    late, link = make_link(catalog), make_link(catalog)
    with catalog.writing() as session:
        row = session.scalars(
            select(LoginSession).where(LoginSession.secret_hash == hash_token(late))
        ).one()
        row.expires_at -= LINK_LASTS
    assert open_link(catalog, late) is None
    opened = open_link(catalog, link)
    assert opened is not None
    assert is_valid(catalog, opened.secret)
    assert not is_valid(catalog, opened.secret, after=SESSION_LASTS)
    make_link(catalog)
    with catalog.reading() as session:
        assert len(list_sessions(session)) == 2  # the link that nobody opened is deleted


def test_a_revoked_session_or_link_is_refused_and_audited(catalog: Catalog) -> None:
    link, other = make_link(catalog), make_link(catalog)
    opened = open_link(catalog, link)
    assert opened is not None
    with catalog.writing() as session:
        assert revoke_session(session, opened.session_id, actor="root")
        assert not revoke_session(session, opened.session_id, actor="root")
        unopened = max(row.session_id for row in list_sessions(session))
        assert revoke_session(session, unopened, actor="root")
        with pytest.raises(SessionNotFoundError, match="id 999"):
            revoke_session(session, 999, actor="root")
    assert not is_valid(catalog, opened.secret)
    assert open_link(catalog, other) is None
    with catalog.reading() as session:
        entries = list_audit(session, object_type="SESSION")
    assert [(entry.actor, entry.action) for entry in entries] == [
        ("root", "session.revoke"),
        ("root", "session.revoke"),
        ("anna", "session.open"),
        ("root", "session.link"),
        ("root", "session.link"),
    ]


def test_a_session_has_the_scopes_of_its_token_and_ends_with_it(catalog: Catalog) -> None:
    with catalog.writing() as session:
        token = create_token(
            session,
            "anna",
            DATA_CONSUMER,
            actor="test",
            scopes=[SCOPE_READ],
            lasts=timedelta(hours=2),
        )
        known = find_token(session, hash_token(token.text), clock.now())
        assert known is not None
        opened = open_by_token(session, known.identity)
    assert opened is not None
    with catalog.reading() as session:
        known_session = find_session(session, hash_token(opened.secret), clock.now())
    assert known_session is not None
    assert known_session.identity.scopes == {SCOPE_READ}
    assert not is_valid(catalog, opened.secret, after=timedelta(hours=2))
    with catalog.writing() as session:
        revoke_token(session, token.token_id, actor="test")
        assert open_by_token(session, known.identity) is None
    assert not is_valid(catalog, opened.secret)


def test_an_unknown_or_disabled_principal_cannot_log_in(catalog: Catalog) -> None:
    opened, link = open_link(catalog, make_link(catalog)), make_link(catalog)
    assert opened is not None
    with catalog.writing() as session:
        with pytest.raises(UnknownPrincipalError, match="No active user named 'bob'"):
            create_link(session, "bob", actor="root")
        session.query(Principal).update({"disabled_at": clock.now()})
        session.flush()
        with pytest.raises(UnknownPrincipalError):
            create_link(session, "anna", actor="root")
    assert not is_valid(catalog, opened.secret)
    assert open_link(catalog, link) is None


def test_only_hashes_are_stored_and_use_is_recorded_to_the_hour(catalog: Catalog) -> None:
    link = make_link(catalog)
    opened = open_link(catalog, link)
    assert opened is not None
    with catalog.writing() as session:
        touch_session(session, opened.session_id, clock.now())
    with catalog.reading() as session:
        row = session.scalars(select(LoginSession)).one()
        stored = " ".join(str(value) for value in vars(row).values())
    assert link not in stored
    assert opened.secret not in stored
    assert row.last_used_at is not None
    assert row.last_used_at.minute == 0
    assert row.browser is not None
    assert len(row.browser) == 200
