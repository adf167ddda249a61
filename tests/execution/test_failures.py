"""Why work failed, in one sentence."""

from grpc import StatusCode  # type: ignore[import-untyped]
from pyspark.errors.exceptions.connect import AnalysisException, SparkConnectGrpcException

from floe.execution.failures import reason_of

RENDEZVOUS = """<_MultiThreadedRendezvous of RPC that terminated with:
\tstatus = StatusCode.UNAVAILABLE
\tdetails = "failed to connect to all addresses; last error: UNKNOWN: Connection refused"
\tdebug_error_string = "UNAVAILABLE:failed to connect to all addresses"
>"""


def test_a_server_that_is_gone_is_one_sentence() -> None:
    assert reason_of(
        SparkConnectGrpcException(RENDEZVOUS, grpc_status_code=StatusCode.UNAVAILABLE)
    ) == (
        "Spark does not answer: failed to connect to all addresses; "
        "last error: UNKNOWN: Connection refused"
    )


def test_an_error_of_ours_is_told_with_its_kind() -> None:
    assert reason_of(ZeroDivisionError("by zero")) == "ZeroDivisionError: by zero"


def test_the_plan_that_spark_appends_is_left_out() -> None:
    error = AnalysisException(
        "[UNRESOLVED_COLUMN] A column `x` cannot be resolved. SQLSTATE: 42703; line 3 pos 2;\n"
        "'Project [n#371L, 'x]\n+- SubqueryAlias totals\n   +- View (`totals`)"
    )
    assert reason_of(error) == (
        "[UNRESOLVED_COLUMN] A column `x` cannot be resolved. SQLSTATE: 42703; line 3 pos 2"
    )
