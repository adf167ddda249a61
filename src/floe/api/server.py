"""Run the API: bind the address, serve requests, and shut down gracefully."""

import errno
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from floe.api.gate import is_loopback
from floe.errors import FloeError

# Time for pending requests to finish; clients that wait for changes are cut off.
GRACEFUL_SECONDS = 5
KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048
# Maps wildcard addresses to the loopback address.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not listened on


class UnsafeAddressError(FloeError):
    """An API without login would be reachable from other machines."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"{host} is reachable from other machines, and --no-auth would give all of them full "
            "access. Remove --no-auth, or listen on 127.0.0.1."
        )


class AddressTakenError(FloeError):
    """The port is already in use."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"Port {port} on {host} is already in use, perhaps by another floe api. "
            "Stop it, or choose another port with --port."
        )


class AddressError(FloeError):
    """The server cannot listen on this address."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"Cannot listen on {host}:{port}: {reason}. Choose another --host or --port."
        )


def listen(host: str, port: int, *, login: bool) -> socket.socket:
    """Bind the address and listen; port 0 picks any free port."""
    if not login and not is_loopback(host):
        raise UnsafeAddressError(host)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With IPPROTO_TCP, asyncio sets TCP_NODELAY, so that small responses are not delayed.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressTakenError(host, port) from error
        raise AddressError(host, port, error.strerror or str(error)) from error
    # Two programs can bind at the same time, but only one of them can listen.
    try:
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise AddressTakenError(host, port) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL for browsers, including those on other machines."""
    host, port = listener.getsockname()[:2]
    return _url(socket.gethostname() if host in EVERYWHERE else host, port)


def local_url_of(listener: socket.socket) -> str:
    """Return the URL for programs on this machine."""
    host, port = listener.getsockname()[:2]
    return _url(EVERYWHERE.get(host, host), port)


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    app: ASGIApp,
    listener: socket.socket,
    welcome: Callable[[], None] = lambda: None,
    *,
    websockets: bool = False,
) -> None:
    """Serve requests until Ctrl-C or SIGTERM, then finish the current ones.

    Signals are handled from before `welcome` is called.
    """
    config = uvicorn.Config(
        app,
        log_level="warning",
        # A line per request would cost as much as the request, and could contain a token.
        access_log=False,
        server_header=False,
        # X-Forwarded-For can be forged, which would bypass the limit of invalid tokens.
        proxy_headers=False,
        ws="auto" if websockets else "none",
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        backlog=BACKLOG,
    )
    server = _Server(config)
    with listener, _handle_stop_signals(server.request_stop):
        welcome()
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that also handles signals received before it starts."""

    _stop_requested = False

    def request_stop(self, *_: object) -> None:
        """Stop as soon as the server has started."""
        self._stop_requested = True

    async def main_loop(self) -> None:
        if not self._stop_requested:
            await super().main_loop()


@contextmanager
def _handle_stop_signals(handle: Callable[..., None]) -> Iterator[None]:
    """Handle stop signals, because uvicorn raises them again after shutdown."""
    stops = (signal.SIGINT, signal.SIGTERM)
    before = {stop: signal.signal(stop, handle) for stop in stops}
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler)
