"""Ops jobs: functions or Dagster ops of the user's, or floe's own upkeep, run as jobs."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from inspect import signature as signature_of
from typing import Any

from dagster import (
    GraphDefinition,
    JobDefinition,
    MetadataValue,
    Nothing,
    OpDefinition,
    OpExecutionContext,
    Out,
    SensorEvaluationContext,
    in_process_executor,
    op,
)
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from floe.execution.functions import FunctionNotLoadedError, load_function
from floe.orchestration.dagster_ops import build_dagster_op_job
from floe.orchestration.loading import Loading
from floe.orchestration.parts import Parts
from floe.orchestration.upkeep import check_upkeep, upkeep
from floe.spec.findings import KeyPath, SpecError
from floe.spec.nearby import suggest
from floe.spec.orchestration import CustomSensor, OpsJob
from floe.spec.orchestration.jobs import MAINTENANCE

CONTEXT = "context"
"""The parameter that gets Dagster's context, when a function has one."""
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def build_ops_job(loading: Loading, parts: Parts, name: str, job: OpsJob) -> JobDefinition:
    """Make a job of a function or a Dagster op; its arguments are checked now."""
    path = ("orchestration", "jobs", name)
    target = _load(loading, path, job)
    if isinstance(target, OpDefinition):
        return build_dagster_op_job(loading, parts, (name, op_name(name, job)), job, target)
    call = check_call(loading, path, job, target)
    graph = GraphDefinition(
        name=name, description=job.description or None, node_defs=[_make_op(name, job, call)]
    )
    # One step alone gains nothing from a process of its own.
    return graph.to_job(executor_def=in_process_executor, tags=job.tags)


def op_name(name: str, job: OpsJob) -> str:
    """Return the name of a job's only op; Dagster wants one that nothing else has."""
    function = job.target_function.replace(":", ".").rpartition(".")[2]
    return f"{name}__{function}"


@dataclass(frozen=True)
class Call:
    """A function, and what it is called with."""

    function: Callable[..., Any]
    args: Mapping[str, Any]
    takes_context: bool

    def run(self, context: OpExecutionContext | SensorEvaluationContext) -> Any:
        return self.function(**self.args, **({CONTEXT: context} if self.takes_context else {}))


def _make_op(name: str, job: OpsJob, call: Call) -> OpDefinition:
    @op(
        name=op_name(name, job),
        description=f"Calls {job.target_function}.",
        out=Out(Nothing),
    )
    def compute(context: OpExecutionContext) -> None:
        result = call.run(context)
        if (shown := _as_metadata(result)) is not None:
            context.add_output_metadata({"result": shown})

    return compute


def _as_metadata(result: Any) -> Any:
    """Return what a function answered as Dagster can show it; None, when it cannot."""
    if isinstance(result, (str, bool, int, float)):
        return result
    if not isinstance(result, (dict, list)) or not result:
        return None
    try:
        return MetadataValue.json(json.loads(json.dumps(result)))
    except (TypeError, ValueError):
        return None


def _load(loading: Loading, path: KeyPath, job: OpsJob) -> Callable[..., Any] | OpDefinition:
    if job.target_function in MAINTENANCE:
        return upkeep(loading.site, job.target_function)
    at = (*path, "target_function")
    try:
        function = load_function(loading.site, job.target_function)
    except FunctionNotLoadedError as error:
        raise loading.refusal(at, str(error).rstrip(".")) from error
    if isinstance(function, OpDefinition):
        return function
    kinds = (iscoroutinefunction, isgeneratorfunction, isasyncgenfunction)
    if any(is_kind(function) for is_kind in kinds):
        what = f"calling '{job.target_function}' runs nothing: it is a coroutine or a generator"
        raise loading.refusal(at, what, "Name a plain function.")
    return function


def check_call(
    loading: Loading, path: KeyPath, job: OpsJob | CustomSensor, function: Callable[..., Any]
) -> Call:
    """Find arguments that a function does not take, or not so; sensors are called like jobs."""
    parameters = _parameters(function)
    wrong = [loading.finding(*one) for one in _check_names(path, job, parameters)]
    values: dict[str, Any] = {}
    for name, value in job.args.items():
        annotation = parameters[name].annotation if name in parameters else Parameter.empty
        try:
            values[name] = _checked(annotation, value)
        except ValidationError as error:
            wrong += [loading.finding(*one) for one in _worded(path, name, error)]
    if not wrong and isinstance(job, OpsJob) and job.target_function in MAINTENANCE:
        wrong = [loading.finding(*one) for one in check_upkeep(loading.site, path, job, values)]
    if wrong:
        raise SpecError(wrong)
    return Call(function, values, CONTEXT in parameters)


Wrong = tuple[KeyPath, str, str]


def _parameters(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    try:
        return signature_of(function, eval_str=True).parameters
    except (NameError, AttributeError, SyntaxError):
        # An annotation that only type checkers can read says nothing here.
        return signature_of(function).parameters


def _check_names(
    path: KeyPath, job: OpsJob | CustomSensor, parameters: Mapping[str, Parameter]
) -> Iterator[Wrong]:
    known = [name for name, one in parameters.items() if one.kind in _BY_NAME and name != CONTEXT]
    takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
    for name in job.args:
        at = (*path, "args", name)
        if name == CONTEXT:
            yield at, "is given by floe", "Remove it: it is Dagster's context."
        elif name not in known and not takes_any:
            hint = suggest(name, known, "" if known else "It takes none.")
            yield at, f"'{job.target_function}' takes no argument '{name}'", hint
    for name, one in parameters.items():
        optional = one.kind in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
        if one.default is Parameter.empty and not optional and name not in {*job.args, CONTEXT}:
            yield (*path, "args", name), "is missing", f"'{job.target_function}' needs it."


def _checked(annotation: Any, value: Any) -> Any:
    """Return a value as its parameter wants it: as JSON would be read, without guessing."""
    if annotation is Parameter.empty or isinstance(annotation, str):
        return value
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    except (PydanticSchemaGenerationError, PydanticUserError):
        return value
    return adapter.validate_json(json.dumps(value), strict=True)


def _worded(path: KeyPath, name: str, error: ValidationError) -> Iterator[Wrong]:
    for one in error.errors(include_url=False):
        context = one.get("ctx", {})
        # The branches of a union and the like are pydantic's, not keys of the file.
        places = tuple(step for step in one["loc"] if isinstance(step, int))
        yield (*path, "args", name, *places), _sentence(one["msg"]), str(context.get("hint", ""))


def _sentence(message: str) -> str:
    return message.removeprefix("Input ").rstrip(".")
