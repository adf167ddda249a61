"""Ops jobs: a function or Dagster op of the project, or table maintenance."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from getpass import getuser
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from inspect import signature as signature_of
from typing import Annotated, Any

from dagster import (
    DagsterInvalidConfigError,
    DagsterInvalidDefinitionError,
    Failure,
    GraphDefinition,
    JobDefinition,
    MetadataValue,
    NodeInvocation,
    Nothing,
    OpDefinition,
    OpExecutionContext,
    Out,
    SensorEvaluationContext,
    in_process_executor,
    op,
    validate_run_config,
)
from pydantic import Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from floe.execution.maintenance.optimization import (
    LAKE,
    MIN_INPUT_FILES,
    analyze_datasets,
    compact_datasets,
)
from floe.execution.maintenance.sweep import VacuumOptions, vacuum_datasets
from floe.execution.site import Site
from floe.execution.user_code import FunctionNotLoadedError, load_function
from floe.orchestration.loading import Loading, Parts
from floe.orchestration.runtime import open_runtime
from floe.spec.findings import KeyPath, SpecError
from floe.spec.nearby import suggest
from floe.spec.orchestration import MAINTENANCE, CustomSensor, OpsJob
from floe.spec.values import Duration

CONTEXT = "context"
"""The parameter that receives Dagster's context, if a function has it."""
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def build_ops_job(loading: Loading, parts: Parts, name: str, job: OpsJob) -> JobDefinition:
    """Build a job from a function or a Dagster op, and check its arguments."""
    path = ("orchestration", "jobs", name)
    target = _load(loading, path, job)
    if isinstance(target, OpDefinition):
        return build_dagster_op_job(loading, parts, (name, op_name(name, job)), job, target)
    call = check_call(loading, path, job, target)
    graph = GraphDefinition(
        name=name, description=job.description or None, node_defs=[_make_op(name, job, call)]
    )
    # A job with one step needs no separate process.
    return graph.to_job(executor_def=in_process_executor, tags=job.tags)


def op_name(name: str, job: OpsJob) -> str:
    """Return the name of a job's only op, unique in Dagster."""
    function = job.target_function.replace(":", ".").rpartition(".")[2]
    return f"{name}__{function}"


@dataclass(frozen=True)
class Call:
    """A function with its arguments."""

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
    """Return a function's result as Dagster metadata, or None if it has no such form."""
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
        return maintenance_function(loading.site, job.target_function)
    at = (*path, "target_function")
    try:
        function = load_function(loading.site, job.target_function)
    except FunctionNotLoadedError as error:
        raise loading.refusal(at, str(error).rstrip(".")) from error
    if isinstance(function, OpDefinition):
        return function
    kinds = (iscoroutinefunction, isgeneratorfunction, isasyncgenfunction)
    if any(is_kind(function) for is_kind in kinds):
        what = (
            f"'{job.target_function}' is a coroutine or a generator, which does not run when called"
        )
        raise loading.refusal(at, what, "Use a plain function.")
    return function


def check_call(
    loading: Loading, path: KeyPath, job: OpsJob | CustomSensor, function: Callable[..., Any]
) -> Call:
    """Check the arguments of a job's or sensor's function: names, then types."""
    parameters = _parameters(function)
    findings = [loading.finding(*problem) for problem in _check_names(path, job, parameters)]
    values: dict[str, Any] = {}
    for name, value in job.args.items():
        annotation = parameters[name].annotation if name in parameters else Parameter.empty
        try:
            values[name] = _checked(annotation, value)
        except ValidationError as error:
            findings += [
                loading.finding(*problem) for problem in _describe_errors(path, name, error)
            ]
    if not findings and isinstance(job, OpsJob) and job.target_function in MAINTENANCE:
        findings = [
            loading.finding(*problem)
            for problem in check_maintenance_args(loading.site, path, job, values)
        ]
    if findings:
        raise SpecError(findings)
    return Call(function, values, CONTEXT in parameters)


Problem = tuple[KeyPath, str, str]


def _parameters(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    try:
        return signature_of(function, eval_str=True).parameters
    except (NameError, AttributeError, SyntaxError):
        # Ignore annotations that only type checkers can resolve.
        return signature_of(function).parameters


def _check_names(
    path: KeyPath, job: OpsJob | CustomSensor, parameters: Mapping[str, Parameter]
) -> Iterator[Problem]:
    known = [
        name
        for name, parameter in parameters.items()
        if parameter.kind in _BY_NAME and name != CONTEXT
    ]
    takes_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values())
    for name in job.args:
        at = (*path, "args", name)
        if name == CONTEXT:
            yield at, "is set by floe", "Remove it: it is Dagster's context."
        elif name not in known and not takes_any:
            hint = suggest(name, known, "" if known else "It takes no arguments.")
            yield at, f"'{job.target_function}' takes no argument '{name}'", hint
    for name, parameter in parameters.items():
        optional = parameter.kind in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
        if (
            parameter.default is Parameter.empty
            and not optional
            and name not in {*job.args, CONTEXT}
        ):
            yield (*path, "args", name), "is missing", f"'{job.target_function}' requires it."


def _checked(annotation: Any, value: Any) -> Any:
    """Convert a value to the type of its parameter, strictly, as from JSON."""
    if annotation is Parameter.empty or isinstance(annotation, str):
        return value
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    except (PydanticSchemaGenerationError, PydanticUserError):
        return value
    return adapter.validate_json(json.dumps(value), strict=True)


def _describe_errors(path: KeyPath, name: str, error: ValidationError) -> Iterator[Problem]:
    for detail in error.errors(include_url=False):
        context = detail.get("ctx", {})
        # Keep list indexes only: names of union branches are pydantic's, not keys of the file.
        places = tuple(step for step in detail["loc"] if isinstance(step, int))
        yield (*path, "args", name, *places), _sentence(detail["msg"]), str(context.get("hint", ""))


def _sentence(message: str) -> str:
    return message.removeprefix("Input ").rstrip(".")


Names = tuple[str, str]
"""The names of the job and of its only node."""


def build_dagster_op_job(
    loading: Loading, parts: Parts, names: Names, job: OpsJob, op: OpDefinition
) -> JobDefinition:
    """Build a job from one Dagster op of the user, and check its config."""
    name, node = names
    path = ("orchestration", "jobs", name)
    _check_resources(loading, parts, path, job, op)
    config = {"ops": {node: _node_config(op, job.args)}}
    graph = GraphDefinition(
        name=name,
        description=job.description or None,
        node_defs=[op],
        dependencies={NodeInvocation(op.name, alias=node): {}},
    )
    resources = {key: parts.resources[key] for key in op.required_resource_keys}
    try:
        built = graph.to_job(
            executor_def=in_process_executor,
            tags=job.tags,
            config=config,
            resource_defs=resources,
        )
        validate_run_config(built, config)
    except DagsterInvalidConfigError as error:
        raise SpecError(
            loading.finding((*path, "args"), _one_line(problem.message)) for problem in error.errors
        ) from error
    except DagsterInvalidDefinitionError as error:
        raise loading.refusal((*path, "target_function"), _one_line(str(error))) from error
    return built


def _node_config(op: OpDefinition, args: Mapping[str, Any]) -> dict[str, Any]:
    inputs = {name: args[name] for name in op.input_dict if name in args}
    config = {name: value for name, value in args.items() if name not in inputs}
    node_config: dict[str, Any] = {}
    if inputs:
        node_config["inputs"] = inputs
    if config:
        node_config["config"] = config
    return node_config


def _check_resources(
    loading: Loading, parts: Parts, path: KeyPath, job: OpsJob, op: OpDefinition
) -> None:
    for key in sorted(op.required_resource_keys - parts.resources.keys()):
        message = (
            f"'{job.target_function}' needs the resource '{key}', which the project does not have"
        )
        hint = "Use a plain function, or an op without this resource."
        raise loading.refusal((*path, "target_function"), message, hint)


def _one_line(message: str) -> str:
    return " ".join(message.split()).rstrip(".")


Datasets = Annotated[list[str], Field(min_length=1)]
Days = Annotated[float, Field(ge=0)]


def maintenance_function(site: Site, name: str) -> Callable[..., Any]:
    """Return a maintenance function, bound to a project."""
    functions: Mapping[str, Callable[..., Any]]
    functions = {"vacuum": vacuum, "compact": compact, "analyze": analyze}
    return partial(functions[name], site)


def vacuum(
    site: Site,
    *,
    context: OpExecutionContext,
    dataset: str | None = None,
    datasets: Datasets | None = None,
    retain: Duration | None = None,
    retention_days: Days | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Remove versions past their retention: the given one, else that of each dataset."""
    age = timedelta(days=retention_days) if retention_days is not None else retain
    order = VacuumOptions(age, dry_run=dry_run, actor=getuser())
    names = _names(dataset, datasets)
    with open_runtime(site) as work:
        report = vacuum_datasets(work.workspace, work.sparks, names, order, context.log.info)
    # A skipped dataset is in use. That is a failure only if the dataset was named.
    unfinished = {**report.failed, **(report.skipped if names else {})}
    for name, reason in report.skipped.items():
        context.log.warning(f"{name} was skipped: {reason}")
    if unfinished:
        each = "; ".join(f"{name}: {reason}" for name, reason in unfinished.items())
        raise Failure(f"Not vacuumed: {each}", metadata={"result": report.plain()})
    return report.plain()


def compact(
    site: Site,
    *,
    context: OpExecutionContext,
    dataset: str | None = None,
    datasets: Datasets | None = None,
    min_input_files: Annotated[int, Field(ge=2)] = MIN_INPUT_FILES,
) -> dict[str, Any]:
    """Merge small files of lake tables into larger ones."""
    names, say = _names(dataset, datasets), context.log.info
    with open_runtime(site) as work:
        done = compact_datasets(work.workspace, work.sparks, names, min_input_files, say)
    return {"tables": [asdict(table) for table in done]}


def analyze(
    site: Site,
    *,
    context: OpExecutionContext,
    dataset: str | None = None,
    datasets: Datasets | None = None,
) -> dict[str, Any]:
    """Compute statistics for query planning, and count rows, files and bytes."""
    with open_runtime(site) as work:
        names = _names(dataset, datasets)
        done = analyze_datasets(work.workspace, work.sparks, names, context.log.info)
    return {"datasets": [asdict(statistics) for statistics in done]}


def _names(dataset: str | None, datasets: Sequence[str] | None) -> list[str] | None:
    if dataset is None and datasets is None:
        return None
    return list(dict.fromkeys([*([dataset] if dataset else []), *(datasets or [])]))


def check_maintenance_args(
    site: Site, path: KeyPath, job: OpsJob, values: Mapping[str, Any]
) -> Iterator[tuple[KeyPath, str, str]]:
    """Find undeclared datasets, datasets that cannot be compacted, and two retentions."""
    args = (*path, "args")
    dataset = values.get("dataset")
    named: list[tuple[KeyPath, str]] = (
        [((*args, "dataset"), dataset)] if dataset is not None else []
    )
    datasets = values.get("datasets") or []
    named += [((*args, "datasets", index), name) for index, name in enumerate(datasets)]
    for at, name in named:
        declared = site.spec.datasets.get(name)
        if declared is None:
            hint = suggest(name, site.spec.datasets, "Declare it under datasets.")
            yield at, f"there is no dataset '{name}'", hint
        elif job.target_function == "compact" and declared.format != LAKE:
            what = f"'{name}' has the format {declared.format}"
            yield at, what, f"Only lake tables (format: {LAKE}) can be compacted."
    if "retain" in values and "retention_days" in values:
        what, hint = "is set together with retain", "Remove one of the two."
        yield (*args, "retention_days"), what, hint
