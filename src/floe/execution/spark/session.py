"""Sessions on a Spark Connect server: one per run, and one for getOrCreate().

User code often calls `SparkSession.builder.getOrCreate()`. Without the address of a server, that
would start a separate Spark with its own lake. While a session is offered, the call returns it
instead; the first call opens the session and starts the server.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from floe.execution.site import Site
from floe.execution.spark.clients import close_session, create_client, ignore_lost_server
from floe.execution.spark.errors import (
    SparkLostError,
    SparkRefusedError,
    is_lost,
    is_refused,
    is_transient,
)
from floe.execution.spark.server import Server, connect_url, ensure_server
from floe.execution.spark.server_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

__all__ = ["close_session", "end_session", "interrupt", "is_lost", "is_transient", "open_session"]


def open_session(
    site: Site,
    server: Server | None = None,
    *,
    conf: Mapping[str, str] | None = None,
    profile: str | None = None,
) -> "ConnectSession":
    """Open a new session, by default on the project's server, started if needed."""
    settings = dict(conf or {})
    if server is not None:
        return _open(site, server, settings)
    try:
        return _open(site, ensure_server(site, profile=profile), settings)
    except SparkLostError:
        # The server died, or was restarted with new settings, after it was looked up.
        return _open(site, ensure_server(site, profile=profile), settings)


def interrupt(session: "ConnectSession") -> None:
    """Cancel everything that runs in a session, from any thread; keep it open.

    Does nothing if the session is closed or its server is lost.
    """
    with ignore_lost_server():
        session.interruptAll()


def end_session(site: Site, session_id: str, *, profile: str | None = None) -> None:
    """Cancel everything in a session whose client is gone, and close the session."""
    server = ensure_server(site, profile=profile)
    # The server accepts any client that knows the session id.
    session = create_client(connect_url(server.url, session=session_id), server.pid)
    interrupt(session)
    close_session(session)


def _open(site: Site, server: Server, conf: Mapping[str, str]) -> "ConnectSession":
    session = create_client(server.url, server.pid)
    try:
        # The first call that reaches the server.
        session.version  # noqa: B018
        for name, value in {**_initial_settings(site, server), **conf}.items():
            session.conf.set(name, value)
    except BaseException as error:
        close_session(session)
        _explain(error, server)
        raise
    return session


def _initial_settings(site: Site, server: Server) -> dict[str, str]:
    return {} if server.ours else session_settings(site)


def _explain(error: BaseException, server: Server) -> None:
    """Raise floe's own error for problems of the server."""
    if is_refused(error):
        raise SparkRefusedError(server.address, _brief(error), ours=server.ours) from error
    if is_lost(error):
        raise SparkLostError(server.address, _brief(error), ours=server.ours) from error


def _brief(error: BaseException) -> str:
    """Return the line of a gRPC error that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    details = [line for line in lines if line.startswith("details =")]
    first = (details or lines or [type(error).__name__])[0]
    return first.removeprefix("details =").strip(' "').rstrip(".")[:300]


class SparkSessions:
    """Opens sessions, one for each run; restarts a server that died."""

    def __init__(self, site: Site) -> None:
        self._site = site

    @contextmanager
    def session(
        self, *, conf: Mapping[str, str] | None = None, profile: str | None = None
    ) -> Iterator["SparkSession"]:
        """Open a session for the duration of a block."""
        opened = open_session(self._site, conf=conf, profile=profile)
        try:
            yield opened
        finally:
            close_session(opened)

    def end(self, session_id: str, *, profile: str | None = None) -> None:
        """Cancel everything in a session whose client is gone, and close it."""
        end_session(self._site, session_id, profile=profile)


REMOTE = "SPARK_REMOTE"
EXPLICIT_SPARK_OPTIONS = ("spark.remote", "spark.master")
"""Builder options that select a particular Spark, which floe then leaves alone."""


class SharedSession:
    """A session of the platform's Spark that is opened on first use."""

    def __init__(self, site: Site, conf: Mapping[str, str] | None = None) -> None:
        self._site = site
        self._conf = dict(conf or {})
        self._lock = threading.RLock()
        self._session: ConnectSession | None = None
        self._url = ""

    def session(self) -> "ConnectSession":
        """Return the session; open a new one if it was stopped or the server changed."""
        with self._lock:
            server = ensure_server(self._site)
            moved = self._url != server.url
            if self._session is None or self._session.is_stopped or moved:
                self.close()
                self._session = open_session(self._site, server, conf=self._conf)
                self._url = server.url
            # For code that looks up the address itself: child processes, dbt.
            os.environ[REMOTE] = server.url
            return self._session

    def close(self) -> None:
        """Close the session, if one was opened."""
        with self._lock:
            if self._session is not None and not self._session.is_stopped:
                close_session(self._session)
            self._session = None


_offered: list[SharedSession] = []


@contextmanager
def offer_session(ambient: SharedSession, *, keep: bool = False) -> Iterator[SharedSession]:
    """Make getOrCreate() return this session during a block, then close it.

    With `keep`, the session stays open for later blocks, and its creator closes it.
    """
    _wrap_get_or_create()
    before = os.environ.get(REMOTE)
    _offered.append(ambient)
    try:
        yield ambient
    finally:
        _offered.remove(ambient)
        if not keep:
            ambient.close()
        os.environ.pop(REMOTE, None)
        if before is not None:
            os.environ[REMOTE] = before


def _wrap_get_or_create() -> None:
    """Wrap pyspark's `getOrCreate`, once."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.Builder
    original = builder.getOrCreate
    if getattr(original, "wrapped_by_floe", False):
        return

    def get_or_create(self: Any) -> Any:
        if _offered and not any(name in self._options for name in EXPLICIT_SPARK_OPTIONS):
            _make_active(_offered[-1].session())
        return original(self)

    get_or_create.wrapped_by_floe = True  # type: ignore[attr-defined]
    builder.getOrCreate = get_or_create


def _make_active(session: "ConnectSession") -> None:
    """Make a session pyspark's active one of this thread; there is no public API."""
    type(session)._active_session.session = session


class LazySession:
    """Opens a session on first use, and closes it at the end of the block."""

    def __init__(self, sparks: SparkSessions) -> None:
        self._sparks, self._stack = sparks, ExitStack()
        self._session: SparkSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def spark(self) -> "SparkSession":
        if self._session is None:
            self._session = self._stack.enter_context(self._sparks.session())
        return self._session
