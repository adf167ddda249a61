"""The processes of floe.yaml as assets: each is computed by floe's runner, and reports there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dagster import (
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    In,
    Nothing,
    OpDefinition,
    Out,
)

from floe.orchestration.cycles import without_cycles
from floe.orchestration.describing import asset_key, group_of, kinds_of, owners_of, plain, tags_of
from floe.orchestration.loading import Loading
from floe.orchestration.metadata import SQL
from floe.orchestration.parts import Parts
from floe.orchestration.process_steps import OutputAsset, ProcessStep
from floe.orchestration.ranges import RESOURCE as KEY_BY_KEY
from floe.orchestration.ranges import key_by_key_resources
from floe.orchestration.runtime import RESOURCE
from floe.spec import ProcessSpec
from floe.spec.findings import Finding, SpecError
from floe.spec.processes import EARLIER_DATES

PROCESS_TAG = "floe/process"
# Dagster looks at a type anew with each input and output that is made.
_INPUT, _OUTPUT = In(Nothing), Out(Nothing)


@dataclass(frozen=True)
class _Draft:
    """A process on its way to an asset: which key each output has."""

    name: str
    spec: ProcessSpec
    outputs: tuple[OutputAsset, ...]
    deps: frozenset[AssetKey]


def build_processes(loading: Loading, parts: Parts) -> Parts:
    """Add an asset for each output of each process."""
    drafts = _drafts(loading, parts)
    made_before = [one for one in parts.assets if isinstance(one, AssetsDefinition)]
    taken = {one.node_def.name for one in made_before if one.is_executable}
    made = [_assets(loading, draft, taken) for draft in drafts]
    resources = {**parts.resources, **key_by_key_resources()}
    return replace(parts, assets=(*parts.assets, *made), resources=resources)


def _drafts(loading: Loading, parts: Parts) -> list[_Draft]:
    """Give each output its key, and refuse those that an asset has already."""
    taken: dict[AssetKey, str] = dict.fromkeys(parts.specs, "")
    findings: list[Finding] = []
    drafts = []
    for name, process in loading.site.spec.processes.items():
        outputs = []
        for alias, output in process.outputs.items():
            key = asset_key(output.dataset)
            if taken.get(key) == "":
                path = ("processes", name, "outputs", alias)
                message = f"'{output.dataset}' is made by an asset of the same key too"
                findings.append(loading.finding(path, message, "Let one of them make it."))
            # Dagster knows one maker for each key: a second writer has one beside it.
            own = key if taken.setdefault(key, name) == name else key.with_prefix(plain(name))
            outputs.append(OutputAsset(alias, output.dataset, own, key))
        drafts.append(_Draft(name, process, tuple(outputs), frozenset()))
    if findings:
        raise SpecError(findings)
    return _with_deps(drafts, parts)


def _with_deps(drafts: list[_Draft], parts: Parts) -> list[_Draft]:
    """Say what each process stands on, without what it reads of earlier dates in a circle."""
    known = {key: [dep.asset_key for dep in spec.deps] for key, spec in parts.specs.items()}
    same: dict[AssetKey, list[AssetKey]] = {**known}
    for draft in drafts:
        for output in draft.outputs:
            same[output.key] = _inputs(draft.spec, earlier=False)
    found = []
    for draft in drafts:
        keys = [output.key for output in draft.outputs]
        earlier = without_cycles(same, keys, _inputs(draft.spec, earlier=True))
        for key in keys:
            same[key] = [*same[key], *earlier]
        found.append(replace(draft, deps=frozenset(same[keys[0]])))
    return found


def _inputs(process: ProcessSpec, *, earlier: bool) -> list[AssetKey]:
    return [
        asset_key(one.dataset)
        for one in process.inputs.values()
        if (one.mapping in EARLIER_DATES) is earlier
    ]


def _assets(loading: Loading, draft: _Draft, taken: set[str]) -> AssetsDefinition:
    """Return the assets of a process.

    They are what Dagster's decorator makes of a function, without the two thirds of its time that
    go into looking at the function: a project has thousands of processes, and they all look alike.
    """
    step = ProcessStep(draft.name, draft.spec, draft.outputs, _checks(loading, draft))
    outputs = {output.key.to_python_identifier(): output.key for output in draft.outputs}
    inputs = {key.to_python_identifier(): key for key in draft.deps}
    # A check `valid` of `orders` is not the output `orders_valid`.
    checks = {f"{one.get_python_identifier()}__check": one for one in _check_specs(step)}

    def compute(context: AssetExecutionContext, _: Mapping[str, Any]) -> Iterator[Any]:
        yield from step.run(context)

    op = OpDefinition(
        compute,
        name=_op_name(draft.name, taken),
        ins=dict.fromkeys(inputs, _INPUT),
        outs=dict.fromkeys([*outputs, *checks], _OUTPUT),
        description=draft.spec.description or None,
        required_resource_keys={RESOURCE, KEY_BY_KEY},
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
    """Return a name that no other step has: `credit.exposure_daily` → `credit__exposure_daily`."""
    name = process.replace(".", "__")
    while name in taken:
        name += "_process"
    taken.add(name)
    return name


def _checks(loading: Loading, draft: _Draft) -> Mapping[str, Mapping[str, str]]:
    """Return the checks that are declared of each output, by the name that Dagster takes."""
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
    if sql := _sql(loading, process):
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


def _sql(loading: Loading, process: ProcessSpec) -> str:
    """Return the SQL of a process, each step under its name."""
    read = loading.site.read_text
    if process.sql is not None:
        return read(process.sql)
    steps = [f"-- {step.name}\n{read(step.sql)}" for step in process.steps if step.sql is not None]
    return "\n\n".join([*steps, *(read(one) for one in process.statements)])
