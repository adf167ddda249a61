"""The pinned pyspark still needs its patches, in the same places."""

import inspect

import pytest
from pyspark.sql.connect.client.core import SparkConnectClient
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

from floe.execution.spark.pyspark_patches import ShortPolicy, silence_pyspark


def test_closing_a_client_of_pyspark_would_stop_shared_threads() -> None:
    assert "ExecutePlanResponseReattachableIterator.shutdown()" in inspect.getsource(
        SparkConnectClient.close
    )
    silence_pyspark()
    pool = ExecutePlanResponseReattachableIterator._get_or_create_release_thread_pool()
    ExecutePlanResponseReattachableIterator.shutdown()
    assert ExecutePlanResponseReattachableIterator._get_or_create_release_thread_pool() is pool


def test_pyspark_would_keep_every_client_until_exit() -> None:
    assert "atexit.register(self._cleanup_ml_cache)" in inspect.getsource(SparkConnectClient)


@pytest.mark.parametrize(("is_gone", "waits"), [(False, [200, 800]), (True, [0, 0])])
def test_retries_do_not_wait_for_a_dead_server(is_gone: bool, waits: list[int]) -> None:
    state = ShortPolicy(lambda: is_gone).to_state()
    assert [state.next_attempt() for _ in waits] == waits


def test_a_client_gives_up_after_its_last_retry() -> None:
    state = ShortPolicy(lambda: True).to_state()
    assert [state.next_attempt() for _ in range(6)] == [0] * 5 + [None]
