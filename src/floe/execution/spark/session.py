"""Sessions on a Spark Connect server: one for each run, which costs a tenth of a second."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from floe.execution.site import Site
from floe.execution.spark.clients import close_session, create_client, server_may_be_gone
from floe.execution.spark.errors import SparkLostError, SparkRefusedError
from floe.execution.spark.faults import is_lost, is_passing, is_refused
from floe.execution.spark.server import Server, connect_url, ensure_server
from floe.execution.spark.settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

__all__ = ["close_session", "end_session", "interrupt", "is_lost", "is_passing", "open_session"]


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


def interrupt(session: "ConnectSession") -> None:
    """End all that runs in a session, from any thread. The session can be used further.

    In one that is closed, or whose server is gone, nothing runs.
    """
    with server_may_be_gone():
        session.interruptAll()


def end_session(site: Site, number: str, *, profile: str | None = None) -> None:
    """End all that runs in a session whose client is gone, and the session with it."""
    server = ensure_server(site, profile=profile)
    # Whoever gives the number of a session is taken for its client.
    session = create_client(connect_url(server.url, session=number), server.pid)
    interrupt(session)
    close_session(session)


def _open(site: Site, server: Server, conf: Mapping[str, str]) -> "ConnectSession":
    session = create_client(server.url, server.pid)
    try:
        # The first call that reaches the server: until now nothing was said to it.
        session.version  # noqa: B018
        for name, value in {**_given(site, server), **conf}.items():
            session.conf.set(name, value)
    except BaseException as error:
        close_session(session)
        _explain(error, server)
        raise
    return session


def _given(site: Site, server: Server) -> dict[str, str]:
    return {} if server.ours else session_settings(site)


def _explain(error: BaseException, server: Server) -> None:
    """Raise in floe's own words what has to do with the server, not with the work."""
    if is_refused(error):
        raise SparkRefusedError(server.address, _brief(error), ours=server.ours) from error
    if is_lost(error):
        raise SparkLostError(server.address, _brief(error), ours=server.ours) from error


def _brief(error: BaseException) -> str:
    """Pick the line that says what happened out of all that gRPC says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith("details =")]
    first = (telling or lines or [type(error).__name__])[0]
    return first.removeprefix("details =").strip(' "').rstrip(".")[:300]
