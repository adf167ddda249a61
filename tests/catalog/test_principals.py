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
    OtherRoleError,
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


def test_a_token_stands_for_its_principal_and_role(catalog: Catalog) -> None:
    with catalog.writing() as session:
        token = create_token(
            session, "anna", DATA_OWNER, actor="root", team="Credit Risk", email="anna@example.com"
        )
    with catalog.reading() as session:
        found = find_token(session, hash_token(token.text), clock.now())
    assert found is not None
    assert found.identity.name == "anna"
    assert found.identity.roles == {DATA_OWNER}
    assert (found.identity.team, found.identity.email) == ("Credit Risk", "anna@example.com")


def test_tokens_differ_and_say_what_they_are(catalog: Catalog) -> None:
    with catalog.writing() as session:
        texts = {create_token(session, "ci", INGEST, actor="root").text for _ in range(20)}
    assert len(texts) == 20
    assert all(text.startswith("floe_") and len(text) >= 48 for text in texts)


def test_a_token_ends_by_time_or_by_being_revoked(catalog: Catalog) -> None:
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
    with catalog.writing() as session, pytest.raises(TokenNotFoundError, match="number 999"):
        revoke_token(session, 999, actor="root")


def test_a_job_host_gets_a_token_for_sending_only(catalog: Catalog) -> None:
    with catalog.writing() as session:
        host = create_token(session, "host", INGEST, actor="root")
        board = create_token(session, "board", DATA_CONSUMER, actor="root", scopes=[SCOPE_READ])
    with catalog.reading() as session:
        found = [find_token(session, hash_token(one.text), clock.now()) for one in (host, board)]
    assert [one.identity.scopes for one in found if one] == [{SCOPE_INGEST}, {SCOPE_READ}]


def test_a_name_keeps_its_role(catalog: Catalog) -> None:
    with catalog.writing() as session:
        create_token(session, "anna", DATA_CONSUMER, actor="root")
    with catalog.writing() as session, pytest.raises(OtherRoleError, match="is DATA_CONSUMER, not"):
        create_token(session, "anna", PLATFORM_ADMIN, actor="root")


def test_unknown_words_are_answered_with_the_known_ones(catalog: Catalog) -> None:
    with catalog.writing() as session:
        with pytest.raises(UnknownRoleError, match="PLATFORM_ADMIN, DATA_STEWARD"):
            create_token(session, "anna", "KING", actor="root")
        with pytest.raises(UnknownScopeError, match="all, read, ingest"):
            create_token(session, "anna", INGEST, actor="root", scopes=["write"])


def test_the_first_administrator_is_made_once(catalog: Catalog) -> None:
    def make() -> bool:
        with catalog.writing() as session:
            return create_first_admin(session, actor="floe api") is not None

    with ThreadPoolExecutor(4) as threads:
        made = [future.result() for future in [threads.submit(make) for _ in range(4)]]
    assert sorted(made) == [False, False, False, True]


def test_no_administrator_is_made_where_there_is_one(catalog: Catalog) -> None:
    with catalog.writing() as session:
        create_token(session, "root", PLATFORM_ADMIN, actor="setup")
    with catalog.writing() as session:
        assert create_first_admin(session, actor="floe api") is None


def test_the_last_use_is_kept_to_the_hour_and_never_goes_back(catalog: Catalog) -> None:
    with catalog.writing() as session:
        token = create_token(session, "a", DATA_CONSUMER, actor="root")
        for minute, hour in ((59, 9), (1, 8)):
            touch_token(session, token.token_id, datetime(2026, 9, 1, hour, minute, tzinfo=UTC))
    with catalog.reading() as session:
        (row,) = list_tokens(session)
    assert row.last_used_at == datetime(2026, 9, 1, 9, tzinfo=UTC)


def test_every_step_is_in_the_audit_log_and_no_secret(catalog: Catalog) -> None:
    with catalog.writing() as session:
        token = create_token(session, "anna", DATA_OWNER, actor="root", team="A")
        create_token(session, "anna", DATA_OWNER, actor="root", team="B")
        revoke_token(session, token.token_id, actor="root")
    with catalog.reading() as session:
        entries = list_audit(session)
        written = str([(one.before_json, one.after_json) for one in entries])
        actions = [one.action for one in reversed(entries)]
    assert actions == [
        "principal.create",
        "role.grant",
        "token.create",
        "principal.update",
        "token.create",
        "token.revoke",
    ]
    assert token.text not in written
