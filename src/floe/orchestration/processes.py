"""Processes as assets, and the jobs for processes that datasets trigger."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dagster import (
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSelection,
    AssetSpec,
    In,
    Nothing,
    OpDefinition,
    Out,
    define_asset_job,
)

from floe.orchestration.dagster_internals import (
    MAX_RETRIES_TAG,
    RETRY_ON_ASSET_OR_OP_FAILURE_TAG,
)
from floe.orchestration.loading import Loading, Parts
from floe.orchestration.metadata import (
    SQL,
    asset_key,
    group_of,
    kinds_of,
    owners_of,
    plain,
    tags_of,
)
from floe.orchestration.process_steps import OutputAsset, ProcessStep
from floe.orchestration.ranges import RESOURCE as PER_KEY
from floe.orchestration.ranges import per_key_resources
from floe.orchestration.runtime import RESOURCE
from floe.spec import ProcessSpec
from floe.spec.findings import Finding, SpecError
from floe.spec.processes import EARLIER_DATES
from floe.spec.sql import process_sql

PROCESS_TAG = "floe/process"
# Shared, because Dagster resolves the type again for each In and Out that is created.
_INPUT, _OUTPUT = In(Nothing), Out(Nothing)


@dataclass(frozen=True)
class _Draft:
    """A process with the asset keys of its outputs, before it becomes an asset."""

    name: str
    spec: ProcessSpec
    outputs: tuple[OutputAsset, ...]
    deps: frozenset[AssetKey]


def build_processes(loading: Loading, parts: Parts) -> Parts:
    """Add an asset for each output of each process."""
    drafts = _drafts(loading, parts)
    existing = [asset for asset in parts.assets if isinstance(asset, AssetsDefinition)]
    taken = {asset.node_def.name for asset in existing if asset.is_executable}
    definitions = [_assets(loading, draft, taken) for draft in drafts]
    resources = {**parts.resources, **per_key_resources()}
    return replace(parts, assets=(*parts.assets, *definitions), resources=resources)


def _drafts(loading: Loading, parts: Parts) -> list[_Draft]:
    """Assign each output its asset key; reject outputs that an asset already has."""
    taken: dict[AssetKey, str] = dict.fromkeys(parts.specs, "")
    findings: list[Finding] = []
    drafts = []
    for name, process in loading.site.spec.processes.items():
        outputs = []
        for alias, output in process.outputs.items():
            key = asset_key(output.dataset)
            if taken.get(key) == "":
                path = ("processes", name, "outputs", alias)
                message = f"'{output.dataset}' is also produced by a Python asset of the same key"
                findings.append(loading.finding(path, message, "Remove one of the two."))
            # Dagster allows one definition per key: a second writer gets a key with a prefix.
            own = key if taken.setdefault(key, name) == name else key.with_prefix(plain(name))
            outputs.append(OutputAsset(alias, output.dataset, own, key))
        drafts.append(_Draft(name, process, tuple(outputs), frozenset()))
    if findings:
        raise SpecError(findings)
    return _with_deps(drafts, parts)


def _with_deps(drafts: list[_Draft], parts: Parts) -> list[_Draft]:
    """Set the dependencies of each process.

    An input of an earlier date is left out if it would close a cycle.
    """
    known = {key: [dep.asset_key for dep in spec.deps] for key, spec in parts.specs.items()}
    by_key: dict[AssetKey, list[AssetKey]] = {**known}
    for draft in drafts:
        for output in draft.outputs:
            by_key[output.key] = _inputs(draft.spec, earlier=False)
    completed = []
    for draft in drafts:
        keys = [output.key for output in draft.outputs]
        earlier = without_cycles(by_key, keys, _inputs(draft.spec, earlier=True))
        for key in keys:
            by_key[key] = [*by_key[key], *earlier]
        completed.append(replace(draft, deps=frozenset(by_key[keys[0]])))
    return completed


def _inputs(process: ProcessSpec, *, earlier: bool) -> list[AssetKey]:
    return [
        asset_key(source.dataset)
        for source in process.inputs.values()
        if (source.mapping in EARLIER_DATES) is earlier
    ]


def _assets(loading: Loading, draft: _Draft, taken: set[str]) -> AssetsDefinition:
    """Return the assets of a process.

    They are built without Dagster's decorator, which spends two thirds of its time inspecting the
    function: a project may have thousands of processes, all with the same function.
    """
    step = ProcessStep(draft.name, draft.spec, draft.outputs, _checks(loading, draft))
    outputs = {output.key.to_python_identifier(): output.key for output in draft.outputs}
    inputs = {key.to_python_identifier(): key for key in draft.deps}
    # Suffixed, so that the check `valid` of `orders` differs from the output `orders_valid`.
    checks = {f"{spec.get_python_identifier()}__check": spec for spec in _check_specs(step)}

    def compute(context: AssetExecutionContext, _: Mapping[str, Any]) -> Iterator[Any]:
        yield from step.run(context)

    op = OpDefinition(
        compute,
        name=_op_name(draft.name, taken),
        ins=dict.fromkeys(inputs, _INPUT),
        outs=dict.fromkeys([*outputs, *checks], _OUTPUT),
        description=draft.spec.description or None,
        required_resource_keys={RESOURCE, PER_KEY},
        tags={PROCESS_TAG: draft.name},
        pool=draft.spec.pool,
    )
    return AssetsDefinition(
        node_def=op,
        keys_by_input_name=inputs,
        keys_by_output_name=outputs,
        specs=[_spec(loading, draft, output) for output in draft.outputs],
        check_specs_by_output_name=checks,
    )


def _check_specs(step: ProcessStep) -> Iterator[AssetCheckSpec]:
    for output in step.outputs:
        for name, description in step.checks[output.dataset].items():
            yield AssetCheckSpec(name, asset=output.key, description=description or None)


def _op_name(process: str, taken: set[str]) -> str:
    """Return a unique op name: `credit.exposure_daily` → `credit__exposure_daily`."""
    name = process.replace(".", "__")
    while name in taken:
        name += "_process"
    taken.add(name)
    return name


def _checks(loading: Loading, draft: _Draft) -> Mapping[str, Mapping[str, str]]:
    """Return the declared checks of each output, by their names in Dagster."""
    datasets = loading.site.spec.datasets
    return {
        output.dataset: {
            plain(check.label): check.description
            for check in (datasets[output.dataset].checks if output.dataset in datasets else ())
        }
        for output in draft.outputs
    }


def _spec(loading: Loading, draft: _Draft, output: OutputAsset) -> AssetSpec:
    process, dataset = draft.spec, loading.site.spec.datasets.get(output.dataset)
    described = (dataset.description if dataset else "") or process.description
    metadata = {PROCESS_TAG: draft.name, "floe/dataset": output.dataset}
    if sql := process_sql(loading.site.root, process):
        metadata[SQL] = sql
    return AssetSpec(
        output.key,
        deps=sorted(draft.deps),
        description=described or None,
        group_name=group_of(output.dataset, dataset),
        owners=owners_of(
            dataset.owner if dataset else None,
            loading.site.spec.owner_or_default(process.owner),
        ),
        tags=tags_of(dataset.tags if dataset else (), process.tags),
        kinds=kinds_of(process, dataset),
        metadata=metadata,
    )


STARTED_BY_DATASETS = frozenset({"dataset", "hybrid"})
PREFIX = "floe__"
DEFAULT_RETRIES = 2
"""How often a run whose OS process was killed is retried."""


def process_job_name(process: str) -> str:
    """Return the name of the job that runs a process when its inputs are ready."""
    return PREFIX + process.replace(".", "__")


def build_process_jobs(loading: Loading, parts: Parts) -> Parts:
    """Add a job for each process with the trigger dataset or hybrid.

    Its runs are requested with a partition key or the run tag `floe/business_date`.
    """
    jobs = dict(parts.jobs)
    keys: defaultdict[str, list[AssetKey]] = defaultdict(list)
    for key, spec in parts.specs.items():
        keys[str(spec.metadata.get(PROCESS_TAG))].append(key)
    for name, process in loading.site.spec.processes.items():
        if process.trigger not in STARTED_BY_DATASETS:
            continue
        job = process_job_name(name)
        if job in jobs:
            path = ("orchestration", "jobs", job)
            raise loading.refusal(
                path, f"is the name of floe's own job for the process '{name}'", "Rename it."
            )
        jobs[job] = define_asset_job(
            job,
            selection=AssetSelection.assets(*keys[name]),
            description=f"Runs {name} when its input datasets are ready.",
            tags={PROCESS_TAG: name, **_retry_tags(loading)},
        )
    return replace(parts, jobs=jobs)


def _retry_tags(loading: Loading) -> dict[str, str]:
    """Return tags that retry killed runs: nobody else restarts what datasets trigger."""
    declared = loading.site.platform.orchestrator.retries
    attempts = declared.attempts if "attempts" in declared.model_fields_set else DEFAULT_RETRIES
    return {
        MAX_RETRIES_TAG: str(attempts),
        RETRY_ON_ASSET_OR_OP_FAILURE_TAG: str(declared.failed).lower(),
    }


Node = TypeVar("Node")


def without_cycles(
    upstream: Mapping[Node, Sequence[Node]], nodes: Iterable[Node], wanted: Iterable[Node]
) -> list[Node]:
    """Return the wanted dependencies of nodes that do not depend on these nodes."""
    ends = set(nodes)
    return [node for node in wanted if not _reaches(upstream, node, ends)]


def _reaches(upstream: Mapping[Node, Sequence[Node]], start: Node, ends: set[Node]) -> bool:
    seen, left = {start}, [start]
    while left:
        node = left.pop()
        if node in ends:
            return True
        new = [parent for parent in upstream.get(node, ()) if parent not in seen]
        seen.update(new)
        left += new
    return False
