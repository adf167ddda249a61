"""What pyspark 4.1 does to a process that lives on after its sessions, undone."""

import atexit
import logging
from typing import Any

from pyspark.logger import PySparkLogger
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator
from pyspark.sql.connect.session import SparkSession

# They print every failed query to the terminal, as JSON; floe says what failed in its own words.
LOUD = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def quieten() -> None:
    """Silence what is said twice, and keep the threads that all sessions share."""
    for name in LOUD:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    # Closing a session ends the threads of all others, waiting for them under a lock that they
    # may need: runs in one process then stand still for ever.
    iterator: Any = ExecutePlanResponseReattachableIterator
    iterator.shutdown = classmethod(lambda cls: None)


def forget_at_exit(session: SparkSession) -> None:
    """Let a session go when it is closed; no process waits for a server to be able to end.

    pyspark keeps every client for ever, to empty a cache of models at the end that the server
    empties with the session.
    """
    atexit.unregister(session.client._cleanup_ml_cache)
