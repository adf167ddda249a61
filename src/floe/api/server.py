"""Run the API: take the address, serve until told to stop, and leave nothing half-written."""

import errno
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from floe.api.gate import is_loopback
from floe.errors import FloeError

# Whoever waits for an answer gets it, but a client that waits for changes is not waited for.
GRACEFUL_SECONDS = 5
KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048
# Who listens on all addresses of this machine, and under which of them it finds itself.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - looked at, not listened on


class UnsafeAddressError(FloeError):
    """Others could reach an API that asks nobody who they are."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"{host} can be reached by others, and --no-auth would let all of them do everything. "
            "Leave out --no-auth, or listen on 127.0.0.1."
        )


class AddressTakenError(FloeError):
    """Another program listens there already."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"Port {port} of {host} is taken by another program, perhaps another floe api. "
            "Stop it, or choose another port with --port."
        )


class AddressError(FloeError):
    """The address cannot be listened on."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"Cannot listen on {host}:{port}: {reason}. Choose another --host or --port."
        )


def listen(host: str, port: int, *, login: bool) -> socket.socket:
    """Take the address; port 0 is any that is free. Callers wait from here on."""
    if not login and not is_loopback(host):
        raise UnsafeAddressError(host)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio would not know that small answers must not wait for each other.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressTakenError(host, port) from error
        raise AddressError(host, port, error.strerror or str(error)) from error
    # Set here too: two programs may bind at once, and only one may listen.
    try:
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise AddressTakenError(host, port) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the address that a browser takes, also that of somebody else's machine."""
    host, port = listener.getsockname()[:2]
    return _url(socket.gethostname() if host in EVERYWHERE else host, port)


def local_url_of(listener: socket.socket) -> str:
    """Return the address that programs of this machine take."""
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
    """Answer requests until Ctrl-C or SIGTERM; then finish what is being answered.

    Whoever was welcomed may send a signal: it is heeded from then on.
    """
    config = uvicorn.Config(
        app,
        log_level="warning",
        # A line per request would cost as much as the request, and could hold a token.
        access_log=False,
        server_header=False,
        # Anybody can write X-Forwarded-For: whoever believes it counts no address's wrong tokens.
        proxy_headers=False,
        ws="auto" if websockets else "none",
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        backlog=BACKLOG,
    )
    server = _Server(config)
    with listener, _signals_kept(server.tell):
        welcome()
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that heeds a signal also if that comes before it listens for signals itself."""

    _told = False

    def tell(self, *_: object) -> None:
        """Let it end as soon as it has started."""
        self._told = True

    async def main_loop(self) -> None:
        if not self._told:
            await super().main_loop()


@contextmanager
def _signals_kept(tell: Callable[..., None]) -> Iterator[None]:
    """Being told to stop is not an error: uvicorn raises the signal again when all is done."""
    stops = (signal.SIGINT, signal.SIGTERM)
    before = {stop: signal.signal(stop, tell) for stop in stops}
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler)
