"""Call functions of the user's project, with arguments chosen by parameter name."""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from floe.errors import FloeError
from floe.execution.engines.contract import Work
from floe.execution.user_code import load_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class InvalidFunctionError(FloeError):
    """A function has unsuitable parameters, or returned the wrong type."""

    def __init__(self, process: str, function: str, reason: str) -> None:
        super().__init__(f"Process '{process}': the function {function} {reason}.")


def call(work: Work, reference: str, offered: Mapping[str, Any]) -> Any:
    """Call a function with those offered values that it has parameters for."""
    function = load_function(work.workspace.site, reference)
    return function(**_arguments(work, reference, function, {**work.bound, **offered}))


def call_for_frame(work: Work, reference: str, seen: Mapping[str, "DataFrame"]) -> "DataFrame":
    """Call the function of a step, which must return one frame."""
    result: Any = call(work, reference, {**seen, "spark": work.spark})
    if not hasattr(result, "writeTo"):
        reason = f"returned {type(result).__name__} instead of a DataFrame"
        raise InvalidFunctionError(work.process, reference, reason)
    frame: DataFrame = result
    return frame


def outputs_by_alias(work: Work, reference: str, result: Any) -> dict[str, Any]:
    """Assign a function's results to outputs."""
    aliases = list(work.spec.outputs)
    if isinstance(result, Mapping):
        if set(result) != set(aliases):
            reason = f"returned {sorted(result)}; expected {sorted(aliases)}"
            raise InvalidFunctionError(work.process, reference, reason)
        return dict(result)
    if len(aliases) > 1:
        reason = f"must return a dictionary with the outputs {', '.join(aliases)}"
        raise InvalidFunctionError(work.process, reference, reason)
    return {aliases[0]: result}


def _arguments(
    work: Work, reference: str, function: Callable[..., Any], offered: Mapping[str, Any]
) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(offered)
    missing = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.name not in offered
    ]
    if missing:
        known = ", ".join(sorted(offered))
        reason = f"has unknown parameters: {', '.join(missing)}. Available: {known}"
        raise InvalidFunctionError(work.process, reference, reason)
    # A declared input or param that the function does not take is a mistake.
    taken = {parameter.name for parameter in parameters}
    unused = [name for name in {**work.spec.params, **work.inputs} if name not in taken]
    if unused and not work.spec.steps:
        raise InvalidFunctionError(work.process, reference, f"does not take {', '.join(unused)}")
    return {name: value for name, value in offered.items() if name in taken}
