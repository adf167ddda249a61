"""Why work failed, in one sentence."""

from datetime import timedelta

import pytest
from grpc import StatusCode  # type: ignore[import-untyped]
from pyspark.errors.exceptions.connect import AnalysisException, SparkConnectGrpcException

from floe.errors import FloeError
from floe.execution.cancellation import RunTimeoutError
from floe.execution.failures import delay_before, is_worth_retrying, reason_of
from floe.execution.spark.errors import SparkLostError
from floe.spec.processes import Retry

RENDEZVOUS = """<_MultiThreadedRendezvous of RPC that terminated with:
\tstatus = StatusCode.UNAVAILABLE
\tdetails = "failed to connect to all addresses; last error: UNKNOWN: Connection refused"
\tdebug_error_string = "UNAVAILABLE:failed to connect to all addresses"
>"""


def test_a_lost_server_is_described_in_one_sentence() -> None:
    assert reason_of(
        SparkConnectGrpcException(RENDEZVOUS, grpc_status_code=StatusCode.UNAVAILABLE)
    ) == (
        "Spark does not answer: failed to connect to all addresses; "
        "last error: UNKNOWN: Connection refused"
    )


def test_a_python_error_is_described_with_its_type() -> None:
    assert reason_of(ZeroDivisionError("by zero")) == "ZeroDivisionError: by zero"


def test_the_plan_that_spark_appends_is_left_out() -> None:
    error = AnalysisException(
        "[UNRESOLVED_COLUMN] A column `x` cannot be resolved. SQLSTATE: 42703; line 3 pos 2;\n"
        "'Project [n#371L, 'x]\n+- SubqueryAlias totals\n   +- View (`totals`)"
    )
    assert reason_of(error) == (
        "[UNRESOLVED_COLUMN] A column `x` cannot be resolved. SQLSTATE: 42703; line 3 pos 2"
    )


@pytest.mark.parametrize(
    ("backoff", "seconds"), [("fixed", [10, 10, 10]), ("linear", [10, 20, 30]),
                             ("exponential", [10, 20, 40])],
)  # fmt: skip
def test_the_retry_delay_follows_the_backoff(backoff: str, seconds: list[int]) -> None:
    retry = Retry.model_validate({"delay": "10s", "backoff": backoff, "max_delay": "1h"})
    assert [delay_before(retry, attempt).seconds for attempt in (2, 3, 4)] == seconds


def test_the_retry_delay_is_limited() -> None:
    retry = Retry.model_validate({"delay": "10m", "max_delay": "15m"})
    assert delay_before(retry, 5) == timedelta(minutes=15)


def test_a_lost_server_and_a_timeout_are_retried() -> None:
    assert is_worth_retrying(SparkLostError("sc://here", "gone", ours=True))
    assert is_worth_retrying(RunTimeoutError("totals", timedelta(seconds=1)))
    assert is_worth_retrying(ConnectionResetError())


def test_errors_that_the_user_must_fix_are_not_retried() -> None:
    assert not is_worth_retrying(FloeError("The schema is broken."))
    assert not is_worth_retrying(ValueError("no such rating"))
