"""Call functions of the user's project, which take what they need by the names of parameters."""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from floe.errors import FloeError
from floe.execution.engines.contract import Work
from floe.execution.functions import load_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class WrongFunctionError(FloeError):
    """A function does not take what it is offered, or does not return what is wanted of it."""

    def __init__(self, process: str, function: str, reason: str) -> None:
        super().__init__(f"Process '{process}': the function {function} {reason}.")


def call(work: Work, reference: str, offered: Mapping[str, Any]) -> Any:
    """Call a function with as much of what is offered as it has parameters for."""
    function = load_function(work.workspace.site, reference)
    return function(**_arguments(work, reference, function, {**work.bound, **offered}))


def call_for_frame(work: Work, reference: str, seen: Mapping[str, "DataFrame"]) -> "DataFrame":
    """Call the function of a step, which gives one frame."""
    result: Any = call(work, reference, {**seen, "spark": work.spark})
    if not hasattr(result, "writeTo"):
        reason = f"returned {type(result).__name__} instead of a DataFrame"
        raise WrongFunctionError(work.process, reference, reason)
    frame: DataFrame = result
    return frame


def by_alias(work: Work, reference: str, result: Any) -> dict[str, Any]:
    """Say which output each result is."""
    aliases = list(work.spec.outputs)
    if isinstance(result, Mapping):
        if set(result) != set(aliases):
            reason = f"returned {sorted(result)}, and the outputs are {sorted(aliases)}"
            raise WrongFunctionError(work.process, reference, reason)
        return dict(result)
    if len(aliases) > 1:
        reason = f"must return a dictionary by output: {', '.join(aliases)}"
        raise WrongFunctionError(work.process, reference, reason)
    return {aliases[0]: result}


def _arguments(
    work: Work, reference: str, function: Callable[..., Any], offered: Mapping[str, Any]
) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return dict(offered)
    missing = [
        one.name for one in parameters if one.default is one.empty and one.name not in offered
    ]
    if missing:
        known = ", ".join(sorted(offered))
        reason = f"asks for {', '.join(missing)}, and there is only {known}"
        raise WrongFunctionError(work.process, reference, reason)
    # Inputs are the point of the process: one that is not taken is a mistake. Params too.
    taken = {one.name for one in parameters}
    unused = [name for name in {**work.spec.params, **work.inputs} if name not in taken]
    if unused and not work.spec.steps:
        raise WrongFunctionError(work.process, reference, f"does not take {', '.join(unused)}")
    return {name: value for name, value in offered.items() if name in taken}
