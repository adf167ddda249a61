"""Which errors can be retried."""

import pytest
from grpc import StatusCode  # type: ignore[import-untyped]
from pyspark.errors.exceptions import connect as spark

from floe.execution.spark.errors import SparkLostError, SparkRefusedError, is_lost, is_transient

LOST = [
    spark.SparkConnectException("[NO_ACTIVE_SESSION] No active Spark session found."),
    spark.UnknownException("[INVALID_HANDLE.SESSION_CLOSED] The handle x is invalid."),
    spark.UnknownException("[INVALID_HANDLE.SESSION_NOT_FOUND] Session not found."),
    spark.UnknownException("[INVALID_HANDLE.SESSION_CHANGED] The existing Spark server driver"),
    spark.SparkConnectGrpcException("gone", grpc_status_code=StatusCode.UNAVAILABLE),
    spark.SparkException("Job 3 cancelled because SparkContext was shut down"),
    SparkLostError("sc://localhost:1", "connection refused", ours=True),
]
TRANSIENT = [
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
def test_a_lost_session_is_recognised_and_can_be_retried(error: Exception) -> None:
    assert is_lost(error)
    assert is_transient(error)


@pytest.mark.parametrize("error", TRANSIENT, ids=str)
def test_a_conflict_or_timeout_can_be_retried_in_the_same_session(error: Exception) -> None:
    assert not is_lost(error)
    assert is_transient(error)


@pytest.mark.parametrize("error", PERMANENT, ids=str)
def test_a_mistake_of_the_user_is_not_retried(error: Exception) -> None:
    assert not is_lost(error)
    assert not is_transient(error)


def test_the_cause_of_an_error_is_examined_too() -> None:
    outer = RuntimeError("the step failed")
    outer.__cause__ = LOST[0]
    assert is_lost(outer)
