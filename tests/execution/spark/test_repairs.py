"""pyspark still does what is undone, in the place where it is undone."""

import inspect

from pyspark.sql.connect.client.core import SparkConnectClient
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

from floe.execution.spark.repairs import quieten


def test_closing_a_client_would_end_the_threads_of_all() -> None:
    assert "ExecutePlanResponseReattachableIterator.shutdown()" in inspect.getsource(
        SparkConnectClient.close
    )
    quieten()
    pool = ExecutePlanResponseReattachableIterator._get_or_create_release_thread_pool()
    ExecutePlanResponseReattachableIterator.shutdown()
    assert ExecutePlanResponseReattachableIterator._get_or_create_release_thread_pool() is pool


def test_a_client_would_be_kept_until_the_process_ends() -> None:
    assert "atexit.register(self._cleanup_ml_cache)" in inspect.getsource(SparkConnectClient)
