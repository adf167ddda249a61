"""Principals, roles and tokens."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from floe import clock
from floe.catalog.audit import list_audit
from floe.catalog.database import Catalog
from floe.catalog.principals import (
    DATA_CONSUMER,
    DATA_OWNER,
    INGEST,
    PLATFORM_ADMIN,
    SCOPE_INGEST,
    SCOPE_READ,
    RoleMismatchError,
    TokenNotFoundError,
    UnknownRoleError,
    UnknownScopeError,
    create_first_admin,
    create_token,
    find_token,
    hash_token,
    list_tokens,
    revoke_token,
    touch_token,
)


def test_a_token_identifies_its_principal_and_role(catalog: Catalog) -> None:
    with catalog.writing() as session:
        token = create_token(
            session, "anna", DATA_OWNER, actor="root", team="Credit Risk", email="anna@example.com"
        )
    with catalog.reading() as session:
        known_token = find_token(session, hash_token(token.text), clock.now())
    assert known_token is not None
    assert known_token.identity.name == "anna"
    assert known_token.identity.roles == {DATA_OWNER}
    assert (known_token.identity.team, known_token.identity.email) == (
        "Credit Risk",
        "anna@example.com",
    )


def test_tokens_are_unique_and_start_with_the_prefix(catalog: Catalog) -> None:
    with catalog.writing() as session:
        texts = {create_token(session, "ci", INGEST, actor="root").text for _ in range(20)}
    assert len(texts) == 20
    assert all(text.startswith("floe_") and len(text) >= 48 for text in texts)


def test_a_token_expires_or_is_revoked(catalog: Catalog) -> None:
    with catalog.writing() as session:
        token = create_token(session, "a", DATA_CONSUMER, actor="root", lasts=timedelta(days=1))
        other = create_token(session, "b", DATA_CONSUMER, actor="root")
        assert revoke_token(session, other.token_id, actor="root")
        assert not revoke_token(session, other.token_id, actor="root")
    with catalog.reading() as session:
        now = clock.now()
        assert find_token(session, hash_token(token.text), now)
        assert find_token(session, hash_token(token.text), now + timedelta(days=1)) is None
        assert find_token(session, hash_token(other.text), now) is None
        assert find_token(session, hash_token("floe_unknown"), now) is None
    with catalog.writing() as session, pytest.raises(TokenNotFoundError, match="id 999"):
        revoke_token(session, 999, actor="root")


def test_an_ingest_token_can_only_ingest(catalog: Catalog) -> None:
    with catalog.writing() as session:
        host = create_token(session, "host", INGEST, actor="root")
        board = create_token(session, "board", DATA_CONSUMER, actor="root", scopes=[SCOPE_READ])
    with catalog.reading() as session:
        tokens = [find_token(session, hash_token(new.text), clock.now()) for new in (host, board)]
    assert [token.identity.scopes for token in tokens if token] == [{SCOPE_INGEST}, {SCOPE_READ}]


def test_a_principal_keeps_its_role(catalog: Catalog) -> None:
    with catalog.writing() as session:
        create_token(session, "anna", DATA_CONSUMER, actor="root")
    refused = pytest.raises(RoleMismatchError, match="has DATA_CONSUMER, not")
    with catalog.writing() as session, refused:
        create_token(session, "anna", PLATFORM_ADMIN, actor="root")


def test_an_unknown_role_or_scope_is_rejected_with_the_valid_ones(catalog: Catalog) -> None:
    with catalog.writing() as session:
        with pytest.raises(UnknownRoleError, match="PLATFORM_ADMIN, DATA_STEWARD"):
            create_token(session, "anna", "KING", actor="root")
        with pytest.raises(UnknownScopeError, match="all, read, ingest"):
            create_token(session, "anna", INGEST, actor="root", scopes=["write"])


def test_the_first_administrator_is_created_once(catalog: Catalog) -> None:
    def create() -> bool:
        with catalog.writing() as session:
            return create_first_admin(session, actor="floe api") is not None

    with ThreadPoolExecutor(4) as threads:
        created = [future.result() for future in [threads.submit(create) for _ in range(4)]]
    assert sorted(created) == [False, False, False, True]


def test_no_second_administrator_is_created(catalog: Catalog) -> None:
    with catalog.writing() as session:
        create_token(session, "root", PLATFORM_ADMIN, actor="setup")
    with catalog.writing() as session:
        assert create_first_admin(session, actor="floe api") is None


def test_the_last_use_is_stored_to_the_hour_and_never_moves_back(catalog: Catalog) -> None:
    with catalog.writing() as session:
        token = create_token(session, "a", DATA_CONSUMER, actor="root")
        for minute, hour in ((59, 9), (1, 8)):
            touch_token(session, token.token_id, datetime(2026, 9, 1, hour, minute, tzinfo=UTC))
    with catalog.reading() as session:
        (row,) = list_tokens(session)
    assert row.last_used_at == datetime(2026, 9, 1, 9, tzinfo=UTC)


def test_every_change_is_in_the_audit_log_without_secrets(catalog: Catalog) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_OWNER, actor="root", team="A")
        create_token(session, "anna", DATA_OWNER, actor="root", team="B")
        revoke_token(session, token.token_id, actor="root")
    with catalog.reading() as session:
        entries = list_audit(session)
        written = str([(entry.before_json, entry.after_json) for entry in entries])
        actions = [entry.action for entry in reversed(entries)]
    assert actions == [
        "principal.create",
        "role.grant",
        "token.create",
        "principal.update",
        "token.create",
        "token.revoke",
    ]
    assert token.text not in written
