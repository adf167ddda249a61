"""What passes is tried again, ever later; what stays is not."""

from datetime import timedelta

import pytest

from floe.errors import FloeError
from floe.execution.cancelling import RunTimeoutError
from floe.execution.retrying import delay_before, is_worth_retrying
from floe.execution.spark.errors import SparkLostError
from floe.spec.processes import Retry


@pytest.mark.parametrize(
    ("backoff", "seconds"), [("fixed", [10, 10, 10]), ("linear", [10, 20, 30]),
                             ("exponential", [10, 20, 40])],
)  # fmt: skip
def test_the_wait_grows_as_declared(backoff: str, seconds: list[int]) -> None:
    retry = Retry.model_validate({"delay": "10s", "backoff": backoff, "max_delay": "1h"})
    assert [delay_before(retry, attempt).seconds for attempt in (2, 3, 4)] == seconds


def test_the_wait_has_a_limit() -> None:
    retry = Retry.model_validate({"delay": "10m", "max_delay": "15m"})
    assert delay_before(retry, 5) == timedelta(minutes=15)


def test_a_lost_server_and_a_timeout_are_worth_another_try() -> None:
    assert is_worth_retrying(SparkLostError("sc://here", "gone", ours=True))
    assert is_worth_retrying(RunTimeoutError("totals", timedelta(seconds=1)))
    assert is_worth_retrying(ConnectionResetError())


def test_what_a_user_has_to_mend_is_not() -> None:
    assert not is_worth_retrying(FloeError("The schema is broken."))
    assert not is_worth_retrying(ValueError("no such rating"))
