"""Which errors pass when tried again."""

import pytest
from grpc import StatusCode  # type: ignore[import-untyped]
from pyspark.errors.exceptions import connect as spark

from floe.execution.spark.errors import SparkLostError, SparkRefusedError
from floe.execution.spark.faults import is_lost, is_passing

LOST = [
    spark.SparkConnectException("[NO_ACTIVE_SESSION] No active Spark session found."),
    spark.UnknownException("[INVALID_HANDLE.SESSION_CLOSED] The handle x is invalid."),
    spark.UnknownException("[INVALID_HANDLE.SESSION_NOT_FOUND] Session not found."),
    spark.UnknownException("[INVALID_HANDLE.SESSION_CHANGED] The existing Spark server driver"),
    spark.SparkConnectGrpcException("gone", grpc_status_code=StatusCode.UNAVAILABLE),
    spark.SparkException("Job 3 cancelled because SparkContext was shut down"),
    SparkLostError("sc://localhost:1", "connection refused", ours=True),
]
PASSING = [
    spark.SparkException("org.apache.iceberg.exceptions.CommitFailedException: Cannot commit"),
    spark.SparkException("ValidationException: Found conflicting files that can contain records"),
    spark.SparkException("SQLiteException: [SQLITE_BUSY] The database file is locked"),
    spark.SparkConnectGrpcException("slow", grpc_status_code=StatusCode.DEADLINE_EXCEEDED),
    TimeoutError("timed out"),
]
PERMANENT = [
    spark.AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] `SESSION_CLOSED_t` cannot be found"),
    spark.ParseException("[PARSE_SYNTAX_ERROR] near 'selec': database is locked"),
    spark.ArithmeticException("[DIVIDE_BY_ZERO] Division by zero."),
    spark.PythonException("TimeoutException in the user's own function"),
    SparkRefusedError("sc://localhost:1", "Invalid authentication token", ours=False),
    ValueError("UNAVAILABLE"),
]


@pytest.mark.parametrize("error", LOST, ids=str)
def test_a_session_that_is_gone_is_lost_and_a_new_one_may_succeed(error: Exception) -> None:
    assert is_lost(error)
    assert is_passing(error)


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_a_conflict_or_a_delay_passes_in_the_same_session(error: Exception) -> None:
    assert not is_lost(error)
    assert is_passing(error)


@pytest.mark.parametrize("error", PERMANENT, ids=str)
def test_a_mistake_stays_a_mistake(error: Exception) -> None:
    assert not is_lost(error)
    assert not is_passing(error)


def test_the_reason_may_lie_underneath() -> None:
    outer = RuntimeError("the step failed")
    outer.__cause__ = LOST[0]
    assert is_lost(outer)
