"""The session that code gets which asks Spark for one by itself: the platform's, and no other.

`SparkSession.builder.getOrCreate()` is what every tutorial says, and without a server's address it
starts a Spark of its own with a lake that nobody knows. While a session is offered, that call
returns it. It is opened, and the server started, with the first call.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from floe.execution.site import Site
from floe.execution.spark.clients import close_session
from floe.execution.spark.server import ensure_server
from floe.execution.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

REMOTE = "SPARK_REMOTE"
ELSEWHERE = ("spark.remote", "spark.master")
"""What a builder was given that wants a certain Spark."""


class Ambient:
    """A session of the platform's Spark that is opened when somebody asks for it."""

    def __init__(self, site: Site, conf: Mapping[str, str] | None = None) -> None:
        self._site = site
        self._conf = dict(conf or {})
        self._lock = threading.RLock()
        self._session: ConnectSession | None = None
        self._url = ""

    def session(self) -> "ConnectSession":
        """Return the session; a new one if that before was stopped or its server is another."""
        with self._lock:
            server = ensure_server(self._site)
            moved = self._url != server.url
            if self._session is None or self._session.is_stopped or moved:
                self.close()
                self._session = open_session(self._site, server, conf=self._conf)
                self._url = server.url
            # For whatever looks for the address by itself: programs that are started, dbt.
            os.environ[REMOTE] = server.url
            return self._session

    def close(self) -> None:
        """Close the session, if one was opened."""
        with self._lock:
            if self._session is not None and not self._session.is_stopped:
                close_session(self._session)
            self._session = None


_offered: list[Ambient] = []


@contextmanager
def offered(ambient: Ambient, *, keep: bool = False) -> Iterator[Ambient]:
    """Let code that asks Spark for a session get this one, for a while. Then it is closed.

    One that is kept can be offered again, and is closed by whoever made it.
    """
    _listen()
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


def _listen() -> None:
    """Put ourselves before `getOrCreate`, once."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.Builder
    original = builder.getOrCreate
    if getattr(original, "heeds_floe", False):
        return

    def get_or_create(self: Any) -> Any:
        if _offered and not any(name in self._options for name in ELSEWHERE):
            _make_active(_offered[-1].session())
        return original(self)

    get_or_create.heeds_floe = True  # type: ignore[attr-defined]
    builder.getOrCreate = get_or_create


def _make_active(session: "ConnectSession") -> None:
    """Let pyspark take a session for that of this thread: it has no public way to say so."""
    type(session)._active_session.session = session
