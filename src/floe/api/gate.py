"""Authenticate requests by token or session.

A valid token or session is cached for a few seconds, so that a busy job host needs no queries and
a revoked token is still rejected soon.
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
    SessionEndedError,
    UnauthorizedError,
)
from floe.api.hosts import SAFE_METHODS, Hosts
from floe.catalog.database import CatalogOutageError, Sessions
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

CACHE_SECONDS = 3.0
CACHE_SIZE = 10_000
# Maximum number of invalid tokens from one address within a minute.
MOST_FAILURES = 10
FAILURE_SECONDS = 60.0
MOST_ADDRESSES = 10_000

# Prefix of the hash of a session's secret, so that no token can be used as a session.
SESSION_PREFIX = "session:"
ONLY_LOCAL = Hosts()

LOCAL = Identity("local", frozenset({PLATFORM_ADMIN}))


class Gate(Protocol):
    """Authenticates requests."""

    async def identify(self, request: HTTPConnection) -> Identity:
        """Return the caller of a request, or raise an error."""

    def recognise(self, authorization: str) -> Identity | None:
        """Return the caller if it is cached."""

    async def open_session(
        self, request: HTTPConnection, *, link: str | None = None, token: str | None = None
    ) -> NewSession:
        """Exchange a login link or token for a session."""

    async def close_session(self, request: HTTPConnection) -> None:
        """End the session of a request."""

    def cookie_name(self) -> str:
        """Return the name of the session cookie."""


class OpenGate:
    """Treats everybody on this machine as administrator. Only for loopback addresses."""

    async def identify(self, request: HTTPConnection) -> Identity:
        # A foreign page could make the browser send requests, from its own origin or under
        # another host name for this machine.
        origin = request.headers.get("origin")
        foreign = origin is not None and origin != f"{request.url.scheme}://{request.url.netloc}"
        if foreign or not is_loopback(request.url.hostname or ""):
            raise ForeignSiteError
        return LOCAL

    def recognise(self, authorization: str) -> Identity | None:
        """Return None, because the origin of each request must be checked."""
        return None

    async def open_session(
        self, request: HTTPConnection, *, link: str | None = None, token: str | None = None
    ) -> NewSession:
        """Raise an error, because there is no login."""
        raise NoSessionError

    async def close_session(self, request: HTTPConnection) -> None:
        """Raise an error, because there is no login."""
        raise NoSessionError

    def cookie_name(self) -> str:
        return ""


class TokenGate:
    """Requires a token, or a session opened with a token or login link."""

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
        self._cache: OrderedDict[str, tuple[Identity, float]] = OrderedDict()
        self._queries: dict[str, asyncio.Future[Identity | None]] = {}
        self._failures = Failures(monotonic)

    def cookie_name(self) -> str:
        # Browsers send cookies to every port of a host, so each project needs its own name.
        return self._cookie

    async def identify(self, request: HTTPConnection) -> Identity:
        token = _bearer_token(request.headers.get("authorization", ""))
        if token is not None:
            token_hash = hash_token(token)
            known = self._find_cached(token_hash)
            return known or await self._look_up(token_hash, _address(request))
        secret = request.cookies.get(self._cookie)
        if not secret:
            raise UnauthorizedError(token_given=False)
        if request.scope.get("method") not in SAFE_METHODS:
            # Also for WebSockets, which have no method and which any page may open.
            self._hosts.check_same_origin(request)
        return await self._identify_session(SESSION_PREFIX + hash_token(secret))

    def recognise(self, authorization: str) -> Identity | None:
        token = _bearer_token(authorization)
        return None if token is None else self._find_cached(hash_token(token))

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
        self._cache.pop(SESSION_PREFIX + hash_token(secret), None)

    async def _identify_session(self, key: str) -> Identity:
        known = self._find_cached(key)
        if known is not None:
            return known
        identity = await self._query(key)
        if identity is None:
            # Not counted as an invalid token: open pages keep polling after their session ended.
            self._cache.pop(key, None)
            raise SessionEndedError
        self._remember(key, identity)
        return identity

    def _find_cached(self, token_hash: str) -> Identity | None:
        known = self._cache.get(token_hash)
        is_valid = known is not None and self._monotonic() < known[1] and not _expired(known[0])
        return known[0] if known is not None and is_valid else None

    async def _look_up(self, token_hash: str, address: str) -> Identity:
        # A job with an invalid token must not block others at the same address: tokens that
        # were valid before are always looked up.
        if token_hash not in self._cache:
            self._failures.check(address)
        identity = await self._query(token_hash)
        if identity is None:
            self._cache.pop(token_hash, None)
            self._failures.note(address)
            raise UnauthorizedError(token_given=True)
        self._remember(token_hash, identity)
        return identity

    def _remember(self, token_hash: str, identity: Identity) -> None:
        self._cache[token_hash] = identity, self._monotonic() + CACHE_SECONDS
        self._cache.move_to_end(token_hash)
        if len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)

    async def _query(self, token_hash: str) -> Identity | None:
        """Query the catalog once for all concurrent requests with the same token."""
        query = self._queries.get(token_hash)
        if query is None:
            query = asyncio.ensure_future(run_in_threadpool(self._find, token_hash))
            self._queries[token_hash] = query
            query.add_done_callback(lambda _: self._queries.pop(token_hash, None))
        # A caller that disconnects must not cancel the query for the others.
        return await asyncio.shield(query)

    def _find(self, key: str) -> Identity | None:
        now, in_session = clock.now(), key.startswith(SESSION_PREFIX)
        known: KnownSession | KnownToken | None
        with self._sessions.reading() as session:
            if in_session:
                known = find_session(session, key.removeprefix(SESSION_PREFIX), now)
            else:
                known = find_token(session, key, now)
        if known is None:
            return None
        identity = known.identity
        if _is_stale(known.last_used_at, now):
            # A catalog that can be read but not written, on a full disk, still answers.
            with suppress(CatalogOutageError), self._sessions.writing() as session:
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
    """Limits invalid tokens per address, so that guessing does not cost many queries."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._by_address: OrderedDict[str, _Failed] = OrderedDict()

    def check(self, address: str) -> None:
        """Raise an error while an address is blocked."""
        failed = self._by_address.get(address)
        if failed is None:
            return
        left = failed.until - self._monotonic()
        if left <= 0:
            del self._by_address[address]
        elif failed.count >= MOST_FAILURES:
            raise AddressBlockedError(int(left) + 1)

    def note(self, address: str) -> None:
        """Count an invalid token."""
        failed = self._by_address.setdefault(address, _Failed(self._monotonic() + FAILURE_SECONDS))
        failed.count += 1
        if len(self._by_address) > MOST_ADDRESSES:
            self._by_address.popitem(last=False)


@dataclass
class _Failed:
    until: float
    count: int = 0


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback address."""
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
