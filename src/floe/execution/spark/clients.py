"""Clients of a Spark Connect server as pyspark makes them, and how they are let go."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from floe.execution.spark.processes import start_of
from floe.execution.spark.queries import query

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

NUMBERS = 200
"""More WITH clauses than a query has, with all the views that it reads."""


def create_client(url: str, pid: int | None = None) -> "ConnectSession":
    """Make a session of its own on the server at a URL; nothing is said to it yet.

    With the number of its process a client knows when the server is dead.
    """
    from pyspark.sql import SparkSession

    from floe.execution.spark.repairs import forget_at_exit, quieten
    from floe.execution.spark.retries import ShortPolicy

    quieten()
    # Not getOrCreate: that would hand out the session of another run.
    builder: Any = SparkSession.builder
    session: ConnectSession = builder.remote(url).create()
    forget_at_exit(session)
    is_gone = (lambda: start_of(pid) is None) if pid is not None else (lambda: False)
    session.client.set_retry_policies([ShortPolicy(is_gone)])
    return session


@contextmanager
def server_may_be_gone() -> Iterator[None]:
    """Pass over that a session cannot be told something: it is closed, or its server is gone."""
    from grpc import RpcError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    # A channel that is closed says so with a ValueError.
    with suppress(PySparkException, RpcError, ValueError):
        yield


def close_session(session: "ConnectSession") -> None:
    """Close a session. That of a server which is gone is closed as well, at once."""
    session.client.set_retry_policies([])
    with server_may_be_gone():
        session.client.release_session()
    # Done above: pyspark would wait for a dead server, and complain.
    session.release_session_on_close = False
    session.stop()


def open_lake(url: str, lake: str) -> None:
    """Let the lake's catalog make its tables, over which two first sessions would stumble."""
    client = create_client(url)
    try:
        client.sql(f"SHOW NAMESPACES IN `{lake}`").collect()
        _use_up_numbers(client)
    finally:
        close_session(client)


def _use_up_numbers(client: "ConnectSession") -> None:
    """Let the numbers that the server gives to WITH clauses start beyond those of any one query.

    A server that has just been started fails with "key not found" where clauses are nested, as in
    views that stand on views; one that has run for a while never did. As far as the trace tells,
    Spark numbers the clauses of a query anew from 0 and takes an old number for a new one.
    """
    named = ", ".join(f"n{number} AS (SELECT 1)" for number in range(NUMBERS))
    # To ask for the columns is enough: nothing has to run.
    query(client, f"WITH {named} SELECT 1").schema  # noqa: B018
