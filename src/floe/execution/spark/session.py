"""Sessions on a Spark Connect server: one for each run, which costs a tenth of a second."""

import atexit
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from floe.execution.site import Site
from floe.execution.spark.errors import SparkLostError
from floe.execution.spark.faults import is_lost
from floe.execution.spark.server import Server, ensure_server
from floe.execution.spark.settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession as ConnectSession


def open_session(
    site: Site,
    server: Server | None = None,
    *,
    conf: Mapping[str, str] | None = None,
    profile: str | None = None,
) -> "ConnectSession":
    """Open a session of its own. Without a server the project's is used, started if need be."""
    settings = dict(conf or {})
    if server is not None:
        return _open(site, server, settings)
    try:
        return _open(site, ensure_server(site, profile=profile), settings)
    except SparkLostError:
        # It died, or was restarted with new settings, between these two moments.
        return _open(site, ensure_server(site, profile=profile), settings)


@contextmanager
def session(
    site: Site, server: Server | None = None, *, conf: Mapping[str, str] | None = None
) -> Iterator["ConnectSession"]:
    """Open a session and close it at the end."""
    opened = open_session(site, server, conf=conf)
    try:
        yield opened
    finally:
        close_session(opened)


def close_session(session: "ConnectSession") -> None:
    """Close a session. That of a server which is gone is closed as well, at once."""
    session.client.set_retry_policies([])
    with suppress(Exception):
        session.client.release_session()
    # Done above: pyspark would wait for a dead server, and complain.
    session.release_session_on_close = False
    session.stop()
    # pyspark keeps every client until the process ends, to clear a cache that is gone by now.
    atexit.unregister(session.client._cleanup_ml_cache)


def interrupt(session: "ConnectSession") -> None:
    """End all that runs in a session, from any thread. The session can be used further."""
    session.interruptAll()


def _open(site: Site, server: Server, conf: Mapping[str, str]) -> "ConnectSession":
    session = _create(server.url)
    settings = {**({} if server.ours else session_settings(site)), **conf}
    try:
        # Also the first call that reaches the server: until now nothing was said to it.
        for name, value in settings.items():
            session.conf.set(name, value)
        session.version  # noqa: B018
    except Exception as error:
        close_session(session)
        if is_lost(error):
            raise SparkLostError(server.address, _brief(error), ours=server.ours) from error
        raise
    return session


def _create(url: str) -> "ConnectSession":
    from pyspark.sql import SparkSession

    from floe.execution.spark.retries import ShortPolicy

    # Not getOrCreate: that would hand out the session of another run.
    builder: Any = SparkSession.builder
    session: ConnectSession = builder.remote(url).create()
    session.client.set_retry_policies([ShortPolicy()])
    return session


def _brief(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if line.startswith("details =")]
    return (telling or lines or [type(error).__name__])[0][:300]
