"""Principals: who may act on the catalog, in which role, and the tokens by which they are known."""

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

# What a token may be used for, of what its principal may do.
SCOPE_ALL, SCOPE_READ, SCOPE_INGEST = "all", "read", "ingest"
SCOPES = (SCOPE_ALL, SCOPE_READ, SCOPE_INGEST)

PERSON, PROGRAM = "PERSON", "PROGRAM"
ADMIN_NAME = "admin"
# So that a token found in a log or in a repository is known for what it is.
TOKEN_PREFIX = "floe_"  # noqa: S105
TOKEN_BYTES = 32
SHOWN_LETTERS = 10
EVERYWHERE = ""


class NamelessError(FloeError):
    """A token was asked for that would be nobody's."""

    def __init__(self) -> None:
        super().__init__("A token needs a name. Say whose it is: a person or a program.")


class UnknownRoleError(FloeError):
    """A role was named that floe does not have."""

    def __init__(self, role: str) -> None:
        super().__init__(f"There is no role '{role}'. Choose one of: {', '.join(ROLES)}")


class UnknownScopeError(FloeError):
    """A scope was named that floe does not have."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"There is no scope '{scope}'. Choose one of: {', '.join(SCOPES)}")


class OtherRoleError(FloeError):
    """A token was asked for in a role that its principal does not have."""

    def __init__(self, name: str, has: Iterable[str], wanted: str) -> None:
        super().__init__(
            f"'{name}' is {' and '.join(sorted(has)) or 'without any role'}, not {wanted}. "
            "Choose another name: a token can do what its principal can."
        )


class TokenNotFoundError(NotFoundError):
    """A token was named that the catalog does not hold."""

    def __init__(self, token_id: int) -> None:
        super().__init__(f"No token has the number {token_id}. List them with: floe token list")


@dataclass(frozen=True)
class Identity:
    """Who is asking, in which roles, and for what the token at hand may be used."""

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
    """A good token: whose it is, and when it was used last."""

    identity: Identity
    last_used_at: datetime | None


@dataclass(frozen=True)
class NewToken:
    """A token just made. Its text is not kept anywhere and cannot be shown again."""

    text: str
    token_id: int
    name: str


def hash_token(text: str) -> str:
    """Return what is kept of a token. It is random enough that no slow hash is needed."""
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
    """Make a token for a principal, and the principal with its role if it is new."""
    if not name.strip():
        raise NamelessError
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
    """Make the administrator and a token for it, unless there has been one before.

    Of several processes that start at once, one makes it: the others wait at its row.
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
    """Return whose a token is; None for one that is unknown, expired or revoked."""
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
    """Return the name of a principal that is not disabled, or None."""
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
    """Note that a token was used, to the hour: no more is known, and no more is written."""
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
    """Return every token with its principal and role, the newest first."""
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
    """Refuse a token from now on; say whether that changed anything."""
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
    has = list_roles(session, known.principal_id)
    if has != [role]:
        raise OtherRoleError(known.name, has, role)
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
    text, moment = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES), clock.now()
    token = AccessToken(
        principal_id=principal.principal_id,
        token_hash=hash_token(text),
        token_start=text[:SHOWN_LETTERS],
        scopes=" ".join(scopes),
        created_at=moment,
        expires_at=None if lasts is None else moment + lasts,
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
