"""Browser sessions: opened by a one-time link or a token, expiring, revocable."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Row, delete, or_, select, update
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import record_audit
from floe.catalog.errors import NotFoundError
from floe.catalog.principals import SCOPE_ALL, TOKEN_BYTES, Identity, hash_token, list_roles
from floe.catalog.tables import AccessToken, LoginSession, Principal
from floe.errors import FloeError

LINK_LASTS = timedelta(hours=1)
SESSION_LASTS = timedelta(hours=12)
KEPT_AFTER_END = timedelta(days=30)
"""How long an ended session is still listed."""
MAX_BROWSER_LENGTH = 200


class SessionNotFoundError(NotFoundError):
    """No session has this id."""

    def __init__(self, session_id: int) -> None:
        super().__init__(f"No session with id {session_id}. List them with: floe session list")


class UnknownPrincipalError(FloeError):
    """A login link was requested for an unknown or disabled principal."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"No active user named '{name}'. "
            f"Create a token first: floe token create --name {name} --role ROLE"
        )


@dataclass(frozen=True)
class KnownSession:
    """A valid session with its identity and last use."""

    identity: Identity
    last_used_at: datetime | None


@dataclass(frozen=True)
class NewSession:
    """A newly opened session. Its secret cannot be shown again."""

    secret: str
    session_id: int
    principal: str
    expires_at: datetime


def create_link(session: Session, name: str, *, actor: str) -> str:
    """Create a one-time login link for a principal; return its secret."""
    principal = session.scalar(
        select(Principal).where(Principal.name == name, Principal.disabled_at.is_(None))
    )
    if principal is None:
        raise UnknownPrincipalError(name)
    now = clock.now()
    _purge(session, now)
    secret = secrets.token_urlsafe(TOKEN_BYTES)
    row = LoginSession(
        principal_id=principal.principal_id,
        secret_hash=hash_token(secret),
        scopes=SCOPE_ALL,
        created_at=now,
        expires_at=now + LINK_LASTS,
    )
    session.add(row)
    session.flush()
    record_audit(
        session,
        actor,
        "session.link",
        "SESSION",
        str(row.session_id),
        after={"principal": name, "expires_at": row.expires_at.isoformat()},
    )
    return secret


def open_by_link(session: Session, link: str, browser: str | None = None) -> NewSession | None:
    """Exchange a login link for a session, or return None if the link is invalid."""
    now, link_hash = clock.now(), hash_token(link)
    row = session.execute(
        select(LoginSession.session_id, Principal.name)
        .join(Principal, Principal.principal_id == LoginSession.principal_id)
        .where(
            LoginSession.secret_hash == link_hash,
            LoginSession.opened_at.is_(None),
            LoginSession.revoked_at.is_(None),
            LoginSession.expires_at > now,
            Principal.disabled_at.is_(None),
        )
    ).one_or_none()
    if row is None:
        return None
    secret, expires_at = secrets.token_urlsafe(TOKEN_BYTES), now + SESSION_LASTS
    # If two browsers open the link at the same time, only one still finds the link's hash.
    opened = session.execute(
        update(LoginSession)
        .where(LoginSession.secret_hash == link_hash)
        .values(
            secret_hash=hash_token(secret),
            opened_at=now,
            expires_at=expires_at,
            browser=_shortened(browser),
        )
    )
    if not opened.rowcount:  # type: ignore[attr-defined]
        return None
    _record(session, row.name, "session.open", row.session_id, row.name)
    return NewSession(secret, row.session_id, row.name, expires_at)


def open_by_token(
    session: Session, identity: Identity, browser: str | None = None
) -> NewSession | None:
    """Open a session for the owner of a token; None if the token was revoked.

    The session ends when the token ends and has the token's scopes.
    """
    now = clock.now()
    principal_id = session.scalar(
        select(AccessToken.principal_id).where(
            AccessToken.token_id == identity.token_id, AccessToken.revoked_at.is_(None)
        )
    )
    if principal_id is None:
        return None
    expires_at = now + SESSION_LASTS
    if identity.expires_at is not None:
        expires_at = min(expires_at, identity.expires_at)
    secret = secrets.token_urlsafe(TOKEN_BYTES)
    row = LoginSession(
        principal_id=principal_id,
        token_id=identity.token_id,
        secret_hash=hash_token(secret),
        scopes=" ".join(sorted(identity.scopes)),
        browser=_shortened(browser),
        created_at=now,
        opened_at=now,
        expires_at=expires_at,
    )
    session.add(row)
    session.flush()
    _record(session, identity.name, "session.open", row.session_id, identity.name)
    return NewSession(secret, row.session_id, identity.name, expires_at)


def find_session(session: Session, secret_hash: str, now: datetime) -> KnownSession | None:
    """Return a session by its secret's hash, or None if it is not valid."""
    row = session.execute(
        select(
            LoginSession.session_id,
            LoginSession.scopes,
            LoginSession.expires_at,
            LoginSession.last_used_at,
            LoginSession.token_id,
            Principal.principal_id,
            Principal.name,
            Principal.team,
            Principal.email,
        )
        .join(Principal, Principal.principal_id == LoginSession.principal_id)
        .join(AccessToken, AccessToken.token_id == LoginSession.token_id, isouter=True)
        .where(
            LoginSession.secret_hash == secret_hash,
            LoginSession.opened_at.is_not(None),
            LoginSession.revoked_at.is_(None),
            LoginSession.expires_at > now,
            Principal.disabled_at.is_(None),
            AccessToken.revoked_at.is_(None),
        )
    ).one_or_none()
    if row is None:
        return None
    identity = Identity(
        name=row.name,
        roles=frozenset(list_roles(session, row.principal_id)),
        scopes=frozenset(row.scopes.split()),
        team=row.team,
        email=row.email,
        token_id=row.token_id or 0,
        session_id=row.session_id,
        expires_at=row.expires_at,
    )
    return KnownSession(identity, row.last_used_at)


def touch_session(session: Session, session_id: int, now: datetime) -> None:
    """Record that a session was used, to the hour."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    session.execute(
        update(LoginSession).where(LoginSession.session_id == session_id).values(last_used_at=hour)
    )


def list_sessions(
    session: Session, *, principal: str | None = None
) -> Sequence[Row[*tuple[object, ...]]]:
    """Return sessions and unopened login links, newest first."""
    query = (
        select(
            LoginSession.session_id,
            Principal.name,
            LoginSession.token_id,
            LoginSession.browser,
            LoginSession.created_at,
            LoginSession.opened_at,
            LoginSession.expires_at,
            LoginSession.last_used_at,
            LoginSession.revoked_at,
        )
        .join(Principal, Principal.principal_id == LoginSession.principal_id)
        .order_by(LoginSession.session_id.desc())
    )
    if principal is not None:
        query = query.where(Principal.name == principal)
    return session.execute(query).all()


def owner_of_session(session: Session, session_id: int) -> str:
    """Return the name of a session's principal."""
    name = session.scalar(
        select(Principal.name)
        .join(LoginSession, LoginSession.principal_id == Principal.principal_id)
        .where(LoginSession.session_id == session_id)
    )
    if name is None:
        raise SessionNotFoundError(session_id)
    return name


def revoke_session(session: Session, session_id: int, *, actor: str) -> bool:
    """Revoke a session or unopened link; return False if it was already revoked."""
    owner = owner_of_session(session, session_id)
    changed = session.execute(
        update(LoginSession)
        .where(LoginSession.session_id == session_id, LoginSession.revoked_at.is_(None))
        .values(revoked_at=clock.now())
    )
    if not changed.rowcount:  # type: ignore[attr-defined]
        return False
    _record(session, actor, "session.revoke", session_id, owner)
    return True


def _record(session: Session, actor: str, action: str, session_id: int, principal: str) -> None:
    record_audit(session, actor, action, "SESSION", str(session_id), after={"principal": principal})


def _purge(session: Session, now: datetime) -> None:
    """Delete sessions that ended long ago, and links that nobody opened."""
    unopened = LoginSession.opened_at.is_(None) & (LoginSession.expires_at <= now)
    ended = LoginSession.expires_at <= now - KEPT_AFTER_END
    session.execute(delete(LoginSession).where(or_(unopened, ended)))


def _shortened(browser: str | None) -> str | None:
    return None if browser is None else browser.replace("\x00", "")[:MAX_BROWSER_LENGTH]
