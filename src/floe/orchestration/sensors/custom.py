"""custom: start a job when a function of the project requests it.

The function returns True (start the job), False or None (do not), a RunRequest, SkipReason or
SensorResult of Dagster, or several RunRequests. It may take Dagster's `context` and store a cursor
through it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

from dagster import (
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)

from floe.errors import FloeError
from floe.execution.user_code import FunctionNotLoadedError, load_function
from floe.orchestration.ops_jobs import Call, check_call
from floe.orchestration.sensors.run_requests import Cause, DeclaredSensor, Starter
from floe.spec.orchestration import CustomSensor


class SensorResultError(FloeError):
    """The function of a sensor returned an invalid value."""

    def __init__(self, function: str, result: object) -> None:
        super().__init__(
            f"The function '{function}' returned a {type(result).__name__}. Return True to start "
            "the job, False or None to skip, a RunRequest, a SkipReason, or several RunRequests."
        )


@dataclass(frozen=True)
class FunctionSensor:
    """Calls a function to decide whether its job starts."""

    function: str
    call: Call
    starter: Starter

    def evaluate(self, context: SensorEvaluationContext) -> SensorResult:
        """Evaluate the sensor once. Dagster shows an exception and evaluates it again."""
        result = self.call.run(context)
        if isinstance(result, SensorResult):
            return result
        requests: list[RunRequest] = []
        skipped = f"{self.function} requested no run."
        for item in _each(result):
            match item:
                case RunRequest():
                    requests.append(item)
                case SkipReason():
                    skipped = item.skip_message or skipped
                case True:
                    # No run key: a function that returns True again requests another run.
                    requests += self.starter.requests(context.instance, Cause())
                case False | None:
                    pass
                case _:
                    raise SensorResultError(self.function, item)
        if requests:
            return SensorResult(run_requests=requests)
        return SensorResult(skip_reason=skipped)


def _each(result: Any) -> Iterable[Any]:
    """Return the results one by one: of a generator, of a list, or a single one."""
    several = isinstance(result, Iterable) and not isinstance(
        result, RunRequest | SkipReason | str | bytes | dict
    )
    return result if several else [result]


def build_custom(declared: DeclaredSensor, sensor: CustomSensor) -> SensorDefinition:
    """Build the sensor; reject a missing function or wrong arguments."""
    loading, at = declared.loading, (*declared.path, "target_function")
    try:
        function = load_function(loading.site, sensor.target_function)
    except FunctionNotLoadedError as error:
        raise loading.refusal(at, str(error).rstrip(".")) from error
    if isinstance(function, SensorDefinition):
        message = f"'{sensor.target_function}' is a Dagster sensor"
        raise loading.refusal(at, message, "Use a plain function: floe creates the sensor.")
    if iscoroutinefunction(function) or isasyncgenfunction(function):
        message = f"'{sensor.target_function}' is a coroutine, which does not run when called"
        raise loading.refusal(at, message, "Use a plain function or a generator.")
    call = check_call(loading, declared.path, sensor, function)
    function_sensor = FunctionSensor(sensor.target_function, call, declared.starter(sensor.job))
    return declared.define(sensor, sensor.job, function_sensor.evaluate)
