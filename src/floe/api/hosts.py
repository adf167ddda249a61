"""Checks of the Host and Origin headers.

A foreign site can resolve its own name to this machine's address (DNS rebinding) and then counts
as the same site. A server therefore accepts only localhost, IP addresses, which cannot be rebound,
and the configured names.
"""

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.types import Scope

from floe.api.errors import CrossOriginError, UnknownHostError

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
LOCALHOST = "localhost"


@dataclass(frozen=True)
class Hosts:
    """The configured host names of a server, in lower case and without a port."""

    names: frozenset[str] = frozenset()
    https: frozenset[str] = frozenset()
    """The names that a proxy serves over https."""

    @classmethod
    def of(cls, *urls_or_names: str | None) -> "Hosts":
        """Read names from public URLs or host names; empty ones are skipped."""
        names, https = set(), set()
        for text in filter(None, urls_or_names):
            parts = urlsplit(text if "://" in text else f"//{text}")
            if parts.hostname:
                names.add(parts.hostname)
                if parts.scheme == "https":
                    https.add(parts.hostname)
        return cls(frozenset(names), frozenset(https))

    def knows(self, host: str) -> bool:
        """Return whether a Host header names this server."""
        name = _name_of(host)
        return name in self.names or name == LOCALHOST or _is_address(name)

    def is_https(self, connection: HTTPConnection) -> bool:
        """Return whether the browser uses https to reach this server."""
        host = connection.headers.get("host", "")
        return connection.url.scheme in ("https", "wss") or _name_of(host) in self.https

    def origin_of(self, connection: HTTPConnection) -> str:
        """Return the origin of this server's pages, as the browser sees it."""
        scheme = "https" if self.is_https(connection) else "http"
        return f"{scheme}://{connection.headers.get('host', '').lower()}"

    def check_host(self, scope: Scope) -> None:
        """Raise an error unless the Host header names this server."""
        given = [value for name, value in scope["headers"] if name == b"host"]
        host = given[0].decode("latin-1") if len(given) == 1 else ""
        if not self.knows(host):
            raise UnknownHostError(host)

    def check_same_origin(self, connection: HTTPConnection) -> None:
        """Raise an error unless one of this server's own pages sent the request.

        Without an Origin header, Sec-Fetch-Site decides. A page can set neither of them.
        """
        origin = connection.headers.get("origin")
        if origin is None:
            allowed = connection.headers.get("sec-fetch-site") == "same-origin"
        else:
            allowed = origin.lower() == self.origin_of(connection)
        if not allowed:
            raise CrossOriginError(origin)


@lru_cache(maxsize=1024)
def _name_of(host: str) -> str:
    """Return the name in a Host header, without the port; empty if it is invalid."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return ""
    clean = parts.netloc == host and "@" not in host
    return (parts.hostname or "") if clean else ""


@lru_cache(maxsize=1024)
def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
