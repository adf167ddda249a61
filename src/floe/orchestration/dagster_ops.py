"""Ops jobs that name a Dagster op: its `args` are the op's config and inputs."""

from collections.abc import Mapping
from typing import Any

from dagster import (
    DagsterInvalidConfigError,
    DagsterInvalidDefinitionError,
    GraphDefinition,
    JobDefinition,
    NodeInvocation,
    OpDefinition,
    in_process_executor,
    validate_run_config,
)

from floe.orchestration.loading import Loading
from floe.orchestration.parts import Parts
from floe.spec.findings import KeyPath, SpecError
from floe.spec.orchestration import OpsJob

Names = tuple[str, str]
"""The names of the job and of its only node."""


def build_dagster_op_job(
    loading: Loading, parts: Parts, names: Names, job: OpsJob, op: OpDefinition
) -> JobDefinition:
    """Make a job of one op of the user's; its config is checked now, not in the night."""
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
        made = graph.to_job(
            executor_def=in_process_executor,
            tags=job.tags,
            config=config,
            resource_defs=resources,
        )
        validate_run_config(made, config)
    except DagsterInvalidConfigError as error:
        raise SpecError(
            loading.finding((*path, "args"), _sentence(one.message)) for one in error.errors
        ) from error
    except DagsterInvalidDefinitionError as error:
        raise loading.refusal((*path, "target_function"), _sentence(str(error))) from error
    return made


def _node_config(op: OpDefinition, args: Mapping[str, Any]) -> dict[str, Any]:
    inputs = {name: args[name] for name in op.input_dict if name in args}
    config = {name: value for name, value in args.items() if name not in inputs}
    made: dict[str, Any] = {}
    if inputs:
        made["inputs"] = inputs
    if config:
        made["config"] = config
    return made


def _check_resources(
    loading: Loading, parts: Parts, path: KeyPath, job: OpsJob, op: OpDefinition
) -> None:
    for key in sorted(op.required_resource_keys - parts.resources.keys()):
        message = f"'{job.target_function}' needs the resource '{key}', which the project lacks"
        hint = "Name a plain function, or an op without it."
        raise loading.refusal((*path, "target_function"), message, hint)


def _sentence(message: str) -> str:
    return " ".join(message.split()).rstrip(".")
