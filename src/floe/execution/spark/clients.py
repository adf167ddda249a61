"""Create and close pyspark clients of a Spark Connect server."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from floe.execution.os_processes import start_of
from floe.execution.spark.queries import query

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

MAX_CLAUSES = 200
"""More WITH clauses than any query has, including the views that it reads."""


def create_client(url: str, pid: int | None = None) -> "ConnectSession":
    """Create a separate session on the server at a URL, without calling it yet.

    With the server's process id, the client notices when the server is dead.
    """
    from pyspark.sql import SparkSession

    from floe.execution.spark.pyspark_patches import ShortPolicy, silence_pyspark, skip_exit_cleanup

    silence_pyspark()
    # Not getOrCreate, which would return the session of another run.
    builder: Any = SparkSession.builder
    session: ConnectSession = builder.remote(url).create()
    skip_exit_cleanup(session)
    is_gone = (lambda: start_of(pid) is None) if pid is not None else (lambda: False)
    session.client.set_retry_policies([ShortPolicy(is_gone)])
    return session


@contextmanager
def ignore_lost_server() -> Iterator[None]:
    """Ignore errors of calls to a session that is closed or whose server is lost."""
    from grpc import RpcError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    # A closed channel raises ValueError.
    with suppress(PySparkException, RpcError, ValueError):
        yield


def close_session(session: "ConnectSession") -> None:
    """Close a session; does not wait if the server is lost."""
    session.client.set_retry_policies([])
    with ignore_lost_server():
        session.client.release_session()
    # Released above, because pyspark would wait for a dead server and log a warning.
    session.release_session_on_close = False
    session.stop()


def initialize_lake(url: str, lake: str) -> None:
    """Let the lake's catalog create its tables, before two sessions do so at once."""
    client = create_client(url)
    try:
        client.sql(f"SHOW NAMESPACES IN `{lake}`").collect()
        _skip_early_clause_ids(client)
    finally:
        close_session(client)


def _skip_early_clause_ids(client: "ConnectSession") -> None:
    """Use up the server's low ids of WITH clauses, so that no query gets them.

    A new server fails with "key not found" on nested clauses, as in views on views; one that has
    run for a while never does. Judging by the stack trace, Spark renumbers the clauses of a query
    from 0 and confuses old ids with new ones.
    """
    named = ", ".join(f"n{index} AS (SELECT 1)" for index in range(MAX_CLAUSES))
    # Asking for the columns is enough; the query need not run.
    query(client, f"WITH {named} SELECT 1").schema  # noqa: B018
