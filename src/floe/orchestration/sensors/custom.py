"""custom: a job starts when a function of the user's says so.

The function answers True (start the job), False or None (not now), a RunRequest, a SkipReason or a
SensorResult of Dagster's, or several run requests. It may take Dagster's `context`, and keep a
cursor with it.
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
from floe.execution.functions import FunctionNotLoadedError, load_function
from floe.orchestration.ops import Call, check_call
from floe.orchestration.sensors.starting import Cause, Declared, Starter
from floe.spec.orchestration import CustomSensor


class SensorAnswerError(FloeError):
    """A function of a sensor answered what no sensor can act on."""

    def __init__(self, function: str, answer: object) -> None:
        super().__init__(
            f"The function '{function}' answered a {type(answer).__name__}. Return True to start "
            "the job, False or None not to, a RunRequest, a SkipReason, or several RunRequests."
        )


@dataclass(frozen=True)
class Asking:
    """Asks a function whether its job has to start."""

    function: str
    call: Call
    starter: Starter

    def evaluate(self, context: SensorEvaluationContext) -> SensorResult:
        """Ask once. What the function raises fails the look: Dagster shows it, and asks again."""
        answer = self.call.run(context)
        if isinstance(answer, SensorResult):
            return answer
        requests: list[RunRequest] = []
        skipped = f"{self.function} does not ask for a run."
        for one in _each(answer):
            match one:
                case RunRequest():
                    requests.append(one)
                case SkipReason():
                    skipped = one.skip_message or skipped
                case True:
                    # Without a key: a function that says True again wants another run.
                    requests += self.starter.requests(context.instance, Cause())
                case False | None:
                    pass
                case _:
                    raise SensorAnswerError(self.function, one)
        if requests:
            return SensorResult(run_requests=requests)
        return SensorResult(skip_reason=skipped)


def _each(answer: Any) -> Iterable[Any]:
    """Return answers one by one: what a generator yields, what a list holds, or the one."""
    several = isinstance(answer, Iterable) and not isinstance(
        answer, RunRequest | SkipReason | str | bytes | dict
    )
    return answer if several else [answer]


def build_custom(declared: Declared, sensor: CustomSensor) -> SensorDefinition:
    """Make the sensor; a function that is missing, or takes other arguments, refuses to load."""
    loading, at = declared.loading, (*declared.path, "target_function")
    try:
        function = load_function(loading.site, sensor.target_function)
    except FunctionNotLoadedError as error:
        raise loading.refusal(at, str(error).rstrip(".")) from error
    if isinstance(function, SensorDefinition):
        message = f"'{sensor.target_function}' is a Dagster sensor"
        raise loading.refusal(at, message, "Name a plain function: floe makes the sensor.")
    if iscoroutinefunction(function) or isasyncgenfunction(function):
        message = f"calling '{sensor.target_function}' runs nothing: it is a coroutine"
        raise loading.refusal(at, message, "Name a plain function or a generator.")
    call = check_call(loading, declared.path, sensor, function)
    asking = Asking(sensor.target_function, call, declared.starter(sensor.job))
    return declared.define(sensor, sensor.job, asking.evaluate)
