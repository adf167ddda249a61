"""The gate: from the token or the session of a request to who is asking.

A token or session that was found valid is believed for a few seconds, so that a busy job host
costs no query and a revoked token is refused soon all the same.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from floe import clock
from floe.api.errors import (
    AddressBlockedError,
    ForeignSiteError,
    LoginRefusedError,
    NoSessionError,
    SessionOverError,
    UnauthorizedError,
)
from floe.api.hosts import SAFE_METHODS, Hosts
from floe.catalog.logins import (
    KnownSession,
    NewSession,
    find_session,
    open_by_link,
    open_by_token,
    revoke_session,
    touch_session,
)
from floe.catalog.principals import (
    PLATFORM_ADMIN,
    Identity,
    KnownToken,
    find_token,
    hash_token,
    touch_token,
)
from floe.catalog.sessions import CatalogAwayError, Sessions

BELIEVED_SECONDS = 3.0
MOST_BELIEVED = 10_000
# So many wrong tokens may come from one address within a minute.
MOST_FAILURES = 10
FAILURE_SECONDS = 60.0
MOST_ADDRESSES = 10_000

# Set before the hash of a session's secret, so that no token can pass for a session.
SESSION_MARK = "session:"
ONLY_LOCAL = Hosts()

LOCAL = Identity("local", frozenset({PLATFORM_ADMIN}))


class Gate(Protocol):
    """Says who is asking."""

    async def identify(self, request: HTTPConnection) -> Identity:
        """Return who sent a request, or raise an error that says what is missing."""

    def recognise(self, authorization: str) -> Identity | None:
        """Return who is asking where that is known without a second look."""

    async def open_session(
        self, request: HTTPConnection, *, link: str | None = None, token: str | None = None
    ) -> NewSession:
        """Exchange a login link or a token for a session."""

    async def close_session(self, request: HTTPConnection) -> None:
        """End the session that a request came with."""

    def cookie_name(self) -> str:
        """Return the name of the cookie that holds the secret of a session."""


class OpenGate:
    """Everybody on this machine is its administrator. Never for an address that others reach."""

    async def identify(self, request: HTTPConnection) -> Identity:
        # A page from elsewhere could make the browser ask: by another name for this machine, or
        # as itself.
        origin = request.headers.get("origin")
        foreign = origin is not None and origin != f"{request.url.scheme}://{request.url.netloc}"
        if foreign or not is_loopback(request.url.hostname or ""):
            raise ForeignSiteError
        return LOCAL

    def recognise(self, authorization: str) -> Identity | None:
        """Nobody: where a request comes from has to be looked at each time."""
        return None

    async def open_session(
        self, request: HTTPConnection, *, link: str | None = None, token: str | None = None
    ) -> NewSession:
        """There is none to open: nobody has to log in."""
        raise NoSessionError

    async def close_session(self, request: HTTPConnection) -> None:
        """There is none to close: nobody has to log in."""
        raise NoSessionError

    def cookie_name(self) -> str:
        return ""


class TokenGate:
    """Everybody needs a token, or a session that was opened with one or with a login link."""

    def __init__(
        self,
        sessions: Sessions,
        monotonic: Callable[[], float] = time.monotonic,
        hosts: Hosts = ONLY_LOCAL,
    ) -> None:
        self._sessions = sessions
        self._monotonic = monotonic
        self._hosts = hosts
        self._cookie = f"floe_session_{sessions.catalog.fingerprint}"
        self._believed: OrderedDict[str, tuple[Identity, float]] = OrderedDict()
        self._asked: dict[str, asyncio.Future[Identity | None]] = {}
        self._failures = Failures(monotonic)

    def cookie_name(self) -> str:
        # Browsers send cookies to every port of a host: two projects must not share a name.
        return self._cookie

    async def identify(self, request: HTTPConnection) -> Identity:
        token = _bearer_token(request.headers.get("authorization", ""))
        if token is not None:
            token_hash = hash_token(token)
            known = self._believe(token_hash)
            return known or await self._look_up(token_hash, _address(request))
        secret = request.cookies.get(self._cookie)
        if not secret:
            raise UnauthorizedError(token_given=False)
        if request.scope.get("method") not in SAFE_METHODS:
            # Also WebSockets, which have no method and which any page may open.
            self._hosts.check_same_origin(request)
        return await self._identify_session(SESSION_MARK + hash_token(secret))

    def recognise(self, authorization: str) -> Identity | None:
        token = _bearer_token(authorization)
        return None if token is None else self._believe(hash_token(token))

    async def open_session(
        self, request: HTTPConnection, *, link: str | None = None, token: str | None = None
    ) -> NewSession:
        if "origin" in request.headers:
            self._hosts.check_same_origin(request)
        address = _address(request)
        self._failures.check(address)
        identity = None if token is None else await self._look_up(hash_token(token), address)
        browser = request.headers.get("user-agent")
        opened = await run_in_threadpool(self._open, link or "", identity, browser)
        if opened is None:
            self._failures.note(address)
            raise LoginRefusedError
        return opened

    async def close_session(self, request: HTTPConnection) -> None:
        identity = await self.identify(request)
        if not identity.session_id:
            raise NoSessionError
        await run_in_threadpool(self._revoke, identity)
        secret = request.cookies.get(self._cookie, "")
        self._believed.pop(SESSION_MARK + hash_token(secret), None)

    async def _identify_session(self, key: str) -> Identity:
        known = self._believe(key)
        if known is not None:
            return known
        identity = await self._ask(key)
        if identity is None:
            # Not counted as a wrong token: open pages go on asking after their session has ended.
            self._believed.pop(key, None)
            raise SessionOverError
        self._remember(key, identity)
        return identity

    def _believe(self, token_hash: str) -> Identity | None:
        known = self._believed.get(token_hash)
        believed = known is not None and self._monotonic() < known[1] and not _expired(known[0])
        return known[0] if known is not None and believed else None

    async def _look_up(self, token_hash: str, address: str) -> Identity:
        # One job with a wrong token must not shut out all who share its address: whoever was
        # found good before is looked up again.
        if token_hash not in self._believed:
            self._failures.check(address)
        identity = await self._ask(token_hash)
        if identity is None:
            self._believed.pop(token_hash, None)
            self._failures.note(address)
            raise UnauthorizedError(token_given=True)
        self._remember(token_hash, identity)
        return identity

    def _remember(self, token_hash: str, identity: Identity) -> None:
        self._believed[token_hash] = identity, self._monotonic() + BELIEVED_SECONDS
        self._believed.move_to_end(token_hash)
        if len(self._believed) > MOST_BELIEVED:
            self._believed.popitem(last=False)

    async def _ask(self, token_hash: str) -> Identity | None:
        """Ask the catalog once for all who come with one token at the same time."""
        asked = self._asked.get(token_hash)
        if asked is None:
            asked = asyncio.ensure_future(run_in_threadpool(self._find, token_hash))
            self._asked[token_hash] = asked
            asked.add_done_callback(lambda _: self._asked.pop(token_hash, None))
        # One who goes away must not take the answer from the others.
        return await asyncio.shield(asked)

    def _find(self, key: str) -> Identity | None:
        now, in_session = clock.now(), key.startswith(SESSION_MARK)
        found: KnownSession | KnownToken | None
        with self._sessions.reading() as session:
            if in_session:
                found = find_session(session, key.removeprefix(SESSION_MARK), now)
            else:
                found = find_token(session, key, now)
        if found is None:
            return None
        identity = found.identity
        if _is_stale(found.last_used_at, now):
            # A catalog that can be read but not written, on a full disk, still answers.
            with suppress(CatalogAwayError), self._sessions.writing() as session:
                if in_session:
                    touch_session(session, identity.session_id, now)
                else:
                    touch_token(session, identity.token_id, now)
        return identity

    def _open(self, link: str, identity: Identity | None, browser: str | None) -> NewSession | None:
        with self._sessions.writing() as session:
            if identity is None:
                return open_by_link(session, link, browser)
            return open_by_token(session, identity, browser)

    def _revoke(self, identity: Identity) -> None:
        with self._sessions.writing() as session:
            revoke_session(session, identity.session_id, actor=identity.name)


class Failures:
    """Wrong tokens by address. Guessing is hopeless; this keeps it from being expensive too."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._by_address: OrderedDict[str, _Failed] = OrderedDict()

    def check(self, address: str) -> None:
        """Raise an error while an address has to wait."""
        failed = self._by_address.get(address)
        if failed is None:
            return
        left = failed.until - self._monotonic()
        if left <= 0:
            del self._by_address[address]
        elif failed.count >= MOST_FAILURES:
            raise AddressBlockedError(int(left) + 1)

    def note(self, address: str) -> None:
        """Count a wrong token."""
        failed = self._by_address.setdefault(address, _Failed(self._monotonic() + FAILURE_SECONDS))
        failed.count += 1
        if len(self._by_address) > MOST_ADDRESSES:
            self._by_address.popitem(last=False)


@dataclass
class _Failed:
    until: float
    count: int = 0


def is_loopback(host: str) -> bool:
    """Say whether a name or address means this very machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _address(request: HTTPConnection) -> str:
    return request.client.host if request.client else ""


def _bearer_token(authorization: str) -> str | None:
    scheme, _, token = authorization.partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _expired(identity: Identity) -> bool:
    return identity.expires_at is not None and identity.expires_at <= clock.now()


def _is_stale(last_used: datetime | None, now: datetime) -> bool:
    return last_used is None or now - last_used >= timedelta(hours=1)
