"""Principals: people and programs with a role, and their access tokens."""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Row, select, update
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import record_audit
from floe.catalog.errors import NotFoundError
from floe.catalog.stores import store_of
from floe.catalog.tables import AccessToken, Principal, RoleGrant
from floe.errors import FloeError

PLATFORM_ADMIN, DATA_STEWARD = "PLATFORM_ADMIN", "DATA_STEWARD"
DATA_OWNER, DATA_CONSUMER, INGEST = "DATA_OWNER", "DATA_CONSUMER", "INGEST"
ROLES = (PLATFORM_ADMIN, DATA_STEWARD, DATA_OWNER, DATA_CONSUMER, INGEST)

# A scope limits a token to a part of what its principal may do.
SCOPE_ALL, SCOPE_READ, SCOPE_INGEST = "all", "read", "ingest"
SCOPES = (SCOPE_ALL, SCOPE_READ, SCOPE_INGEST)

PERSON, PROGRAM = "PERSON", "PROGRAM"
ADMIN_NAME = "admin"
# Makes a token recognizable in a log or repository.
TOKEN_PREFIX = "floe_"  # noqa: S105
TOKEN_BYTES = 32
SHOWN_CHARACTERS = 10
EVERYWHERE = ""


class MissingNameError(FloeError):
    """A token was requested without a name."""

    def __init__(self) -> None:
        super().__init__("A token needs a name: the person or program that uses it.")


class UnknownRoleError(FloeError):
    """floe has no role of this name."""

    def __init__(self, role: str) -> None:
        super().__init__(f"Unknown role '{role}'. Choose one of: {', '.join(ROLES)}")


class UnknownScopeError(FloeError):
    """floe has no scope of this name."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"Unknown scope '{scope}'. Choose one of: {', '.join(SCOPES)}")


class RoleMismatchError(FloeError):
    """A token was requested with a role that its principal does not have."""

    def __init__(self, name: str, roles: Iterable[str], wanted: str) -> None:
        super().__init__(
            f"'{name}' has {' and '.join(sorted(roles)) or 'no role'}, not {wanted}. "
            "Choose another name: a token has the role of its principal."
        )


class TokenNotFoundError(NotFoundError):
    """No token has this id."""

    def __init__(self, token_id: int) -> None:
        super().__init__(f"No token with id {token_id}. List them with: floe token list")


@dataclass(frozen=True)
class Identity:
    """The caller: name, roles, and the scopes of the token or session in use."""

    name: str
    roles: frozenset[str]
    scopes: frozenset[str] = frozenset({SCOPE_ALL})
    team: str | None = None
    email: str | None = None
    token_id: int = 0
    session_id: int = 0
    expires_at: datetime | None = None


@dataclass(frozen=True)
class KnownToken:
    """A valid token with its identity and last use."""

    identity: Identity
    last_used_at: datetime | None


@dataclass(frozen=True)
class NewToken:
    """A newly created token. Its text is not stored and cannot be shown again."""

    text: str
    token_id: int
    name: str


def hash_token(text: str) -> str:
    """Return a token's hash. A token is random, so no slow hash is needed."""
    return hashlib.sha256(text.encode()).hexdigest()


def create_token(
    session: Session,
    name: str,
    role: str,
    *,
    actor: str,
    kind: str = PROGRAM,
    team: str | None = None,
    email: str | None = None,
    lasts: timedelta | None = None,
    scopes: Sequence[str] = (),
) -> NewToken:
    """Create a token for a principal; create the principal if it is new."""
    if not name.strip():
        raise MissingNameError
    if role not in ROLES:
        raise UnknownRoleError(role)
    wanted = list(scopes) or [SCOPE_INGEST if role == INGEST else SCOPE_ALL]
    for scope in wanted:
        if scope not in SCOPES:
            raise UnknownScopeError(scope)
    wanted_principal = Principal(name=name, kind=kind, team=team, email=email)
    principal = _put_principal(session, wanted_principal, role, actor)
    return _add_token(session, principal, wanted, lasts, actor)


def create_first_admin(session: Session, actor: str) -> NewToken | None:
    """Create the first administrator and its token, unless one exists already.

    If several processes start at the same time, only one creates it: the others wait for the row
    lock.
    """
    session.flush()
    row = {"name": ADMIN_NAME, "kind": PERSON, "created_at": clock.now()}
    store_of(session).upsert(session, Principal, [row], key=("name",), update=())
    principal = session.scalars(
        select(Principal).where(Principal.name == ADMIN_NAME).with_for_update()
    ).one()
    if list_roles(session, principal.principal_id) or _has_admin(session):
        return None
    _grant(session, principal, PLATFORM_ADMIN, actor)
    return _add_token(session, principal, [SCOPE_ALL], None, actor)


def find_token(session: Session, token_hash: str, now: datetime) -> KnownToken | None:
    """Return a token by its hash, or None if it is unknown, expired or revoked."""
    row = session.execute(
        select(*_TOKEN, *_OWNER)
        .join(Principal, Principal.principal_id == AccessToken.principal_id)
        .where(
            AccessToken.token_hash == token_hash,
            AccessToken.revoked_at.is_(None),
            Principal.disabled_at.is_(None),
        )
    ).one_or_none()
    if row is None or (row.expires_at is not None and row.expires_at <= now):
        return None
    identity = Identity(
        name=row.name,
        roles=frozenset(list_roles(session, row.principal_id)),
        scopes=frozenset(row.scopes.split()),
        team=row.team,
        email=row.email,
        token_id=row.token_id,
        expires_at=row.expires_at,
    )
    return KnownToken(identity, row.last_used_at)


def find_principal(session: Session, name: str) -> str | None:
    """Return the name of an active principal, or None."""
    return session.scalar(
        select(Principal.name).where(Principal.name == name, Principal.disabled_at.is_(None))
    )


_TOKEN = (
    AccessToken.token_id,
    AccessToken.scopes,
    AccessToken.expires_at,
    AccessToken.last_used_at,
)
_OWNER = (Principal.principal_id, Principal.name, Principal.team, Principal.email)


def touch_token(session: Session, token_id: int, now: datetime) -> None:
    """Record that a token was used, to the hour, so that few updates are written."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    session.execute(
        update(AccessToken)
        .where(
            AccessToken.token_id == token_id,
            AccessToken.last_used_at.is_(None) | (AccessToken.last_used_at < hour),
        )
        .values(last_used_at=hour)
    )


def list_tokens(session: Session) -> Sequence[Row[*tuple[object, ...]]]:
    """Return every token with its principal and role, newest first."""
    return session.execute(
        select(
            AccessToken.token_id,
            Principal.name,
            RoleGrant.role,
            Principal.team,
            AccessToken.token_start,
            AccessToken.scopes,
            AccessToken.created_at,
            AccessToken.expires_at,
            AccessToken.last_used_at,
            AccessToken.revoked_at,
        )
        .join(Principal, Principal.principal_id == AccessToken.principal_id)
        .join(RoleGrant, RoleGrant.principal_id == Principal.principal_id, isouter=True)
        .order_by(AccessToken.token_id.desc())
    ).all()


def revoke_token(session: Session, token_id: int, *, actor: str) -> bool:
    """Revoke a token; return False if it was already revoked."""
    token = session.get(AccessToken, token_id)
    if token is None:
        raise TokenNotFoundError(token_id)
    if token.revoked_at is not None:
        return False
    token.revoked_at = clock.now()
    record_audit(
        session, actor, "token.revoke", "TOKEN", str(token_id), before=_described(session, token)
    )
    return True


def _put_principal(session: Session, wanted: Principal, role: str, actor: str) -> Principal:
    known = session.scalar(select(Principal).where(Principal.name == wanted.name))
    if known is None:
        return _add_principal(session, wanted, role, actor)
    roles = list_roles(session, known.principal_id)
    if roles != [role]:
        raise RoleMismatchError(known.name, roles, role)
    before = _contact(known)
    known.team, known.email = wanted.team or known.team, wanted.email or known.email
    if _contact(known) != before:
        record_audit(
            session,
            actor,
            "principal.update",
            "PRINCIPAL",
            known.name,
            before=before,
            after=_contact(known),
        )
    return known


def _add_principal(session: Session, wanted: Principal, role: str, actor: str) -> Principal:
    wanted.created_at = clock.now()
    session.add(wanted)
    session.flush()
    after = {"kind": wanted.kind, **_contact(wanted)}
    record_audit(session, actor, "principal.create", "PRINCIPAL", wanted.name, after=after)
    _grant(session, wanted, role, actor)
    return wanted


def _contact(principal: Principal) -> dict[str, str | None]:
    return {"team": principal.team, "email": principal.email}


def _grant(session: Session, principal: Principal, role: str, actor: str) -> None:
    session.add(
        RoleGrant(
            principal_id=principal.principal_id,
            role=role,
            scope=EVERYWHERE,
            granted_by=actor,
            granted_at=clock.now(),
        )
    )
    record_audit(session, actor, "role.grant", "PRINCIPAL", principal.name, after={"role": role})


def _add_token(
    session: Session,
    principal: Principal,
    scopes: Sequence[str],
    lasts: timedelta | None,
    actor: str,
) -> NewToken:
    text, now = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES), clock.now()
    token = AccessToken(
        principal_id=principal.principal_id,
        token_hash=hash_token(text),
        token_start=text[:SHOWN_CHARACTERS],
        scopes=" ".join(scopes),
        created_at=now,
        expires_at=None if lasts is None else now + lasts,
    )
    session.add(token)
    session.flush()
    record_audit(
        session,
        actor,
        "token.create",
        "TOKEN",
        str(token.token_id),
        after=_described(session, token),
    )
    return NewToken(text, token.token_id, principal.name)


def _described(session: Session, token: AccessToken) -> dict[str, str | None]:
    principal = session.get_one(Principal, token.principal_id)
    expires = token.expires_at.isoformat() if token.expires_at else None
    return {"principal": principal.name, "scopes": token.scopes, "expires_at": expires}


def list_roles(session: Session, principal_id: int) -> list[str]:
    """Return the roles of a principal."""
    return list(
        session.scalars(select(RoleGrant.role).where(RoleGrant.principal_id == principal_id))
    )


def _has_admin(session: Session) -> bool:
    return bool(
        session.scalars(
            select(RoleGrant.principal_id).where(RoleGrant.role == PLATFORM_ADMIN).limit(1)
        ).all()
    )
