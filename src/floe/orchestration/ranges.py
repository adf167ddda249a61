"""One run for several partitions: Python assets are computed key by key, in order.

Dagster marks a run for a range of partitions by two tags, and leaves the rest to the asset: its
function is called once for all of them. Most functions know one partition only. So the steps of
such assets are started by a resource, which is Dagster's own door for whoever wants to run a step
in another way. In an ordinary run it does what Dagster does. In a run for a range it does that for
each key in turn, as if the run were for this key alone: inputs are loaded, the function is called,
outputs are written and the materialisation is recorded before the next key begins. When a key
fails, those before it stay.

An asset whose decorator has a backfill policy knows ranges by itself, and gets them as they are.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from logging import LogRecord
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckSeverity,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    DagsterEvent,
    DagsterEventType,
    DagsterInstance,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    OpDefinition,
    PartitionKeyRange,
    ResourceDefinition,
    StepLauncher,
    partition_loading_context,
)

# To start steps in another way is public, what one needs for it is not: these names are all of it.
# tests/orchestration/test_ranges.py shows when one of them means something else.
from dagster._core.execution.context.system import StepExecutionContext
from dagster._core.execution.plan.execute_step import core_dagster_event_sequence_for_step
from dagster._core.execution.plan.objects import StepSuccessData
from dagster._core.log_manager import get_log_record_event, has_log_record_event

from floe.orchestration.loading import Loading
from floe.orchestration.parts import AnyPartitions, Parts

RESOURCE = "floe_ranges"
RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
_BOUNDS = (
    DagsterEventType.STEP_START.value,
    DagsterEventType.STEP_RESTARTED.value,
    DagsterEventType.STEP_SUCCESS.value,
)
"""What Dagster says where a step begins and where it ends: once for a step, not for each key."""
_TYPES = (DagsterEventType.STEP_INPUT.value, DagsterEventType.STEP_OUTPUT.value)
"""What it says of the types of values. It names no partition: that of the last key is enough."""
SAY_SECONDS = 1.0
"""Keys that take less are not announced one by one: every line is a write to Dagster's database."""


def build_ranges(loading: Loading, parts: Parts) -> Parts:
    """Let Python assets that know one partition at a time be computed key by key."""
    return replace(
        parts,
        assets=tuple(_key_by_key(one) for one in parts.assets),
        resources={**parts.resources, **key_by_key_resources()},
    )


def key_by_key_resources() -> dict[str, ResourceDefinition]:
    """Return what an asset that is computed key by key needs to run."""
    resource = ResourceDefinition.hardcoded_resource(
        KeyByKey(), "Computes one partition after the other in a run for several."
    )
    return {RESOURCE: resource}


def is_key_by_key(asset: AssetsDefinition) -> bool:
    """Tell whether an asset is computed key by key in a run for several."""
    return isinstance(asset.node_def, OpDefinition) and (
        RESOURCE in asset.node_def.required_resource_keys
    )


def keys_in_range(partitions: AnyPartitions, start: str, end: str) -> Sequence[str]:
    """Return the keys from one to another, both included, in the order in which they are made.

    Of keys with several dimensions, all of a date come before those of the next.
    """
    keys = partitions.get_partition_keys_in_range(PartitionKeyRange(start, end))
    if not isinstance(partitions, MultiPartitionsDefinition):
        return keys
    if not partitions.has_time_window_dimension:
        return keys
    dimension = partitions.time_window_dimension.name
    first, last = (partitions.get_partition_key_from_str(key) for key in (start, end))
    dates = partitions.time_window_partitions_def.get_partition_keys_in_range(
        PartitionKeyRange(first.keys_by_dimension[dimension], last.keys_by_dimension[dimension])
    )
    places = {date: place for place, date in enumerate(dates)}
    return sorted(keys, key=lambda key: places[_part(key, dimension)])


def _part(key: str, dimension: str) -> str:
    assert isinstance(key, MultiPartitionKey), "Dagster gives keys of several dimensions as such"
    return key.keys_by_dimension[dimension]


def _key_by_key(asset: AssetsDefinition | AssetSpec) -> AssetsDefinition | AssetSpec:
    if not isinstance(asset, AssetsDefinition) or not asset.is_materializable:
        return asset
    if asset.backfill_policy is not None or not isinstance(asset.node_def, OpDefinition):
        return asset
    if is_key_by_key(asset):
        return asset
    # As Dagster itself makes an asset that differs in one thing.
    return AssetsDefinition.dagster_internal_init(
        **{**asset.get_attributes_dict(), "node_def": _started_by_us(asset.node_def)}
    )


def _started_by_us(op: OpDefinition) -> OpDefinition:
    return OpDefinition(
        compute_fn=op.compute_fn,
        name=op.name,
        ins=op.ins,
        outs=op.outs,
        description=op.description,
        config_schema=op.config_schema,
        required_resource_keys=op.required_resource_keys | {RESOURCE},
        tags=op.tags,
        retry_policy=op.retry_policy,
        pool=op.pool,
    )


class KeyByKey(StepLauncher):
    """Runs the steps of assets that know one partition at a time."""

    def __init__(self) -> None:
        # Dagster's own would recommend Pipes, which are for steps that run elsewhere.
        pass

    def launch_step(self, step_context: StepExecutionContext) -> Iterator[DagsterEvent]:
        """Run a step, for each key of the run's range where there is one."""
        partitions = step_context.assets_def.partitions_def if step_context.assets_def else None
        if partitions is None or not step_context.has_partition_key_range:
            yield from core_dagster_event_sequence_for_step(step_context)
        else:
            yield from _run_range(step_context, partitions)


def _run_range(step: StepExecutionContext, partitions: AnyPartitions) -> Iterator[DagsterEvent]:
    attempt = step.previous_attempt_count
    if attempt:
        yield DagsterEvent.step_restarted_event(step, attempt)
    else:
        yield DagsterEvent.step_start_event(step)
    started = time.monotonic()
    wanted = step.partition_key_range
    with partition_loading_context(dynamic_partitions_store=step.instance):
        keys = keys_in_range(partitions, wanted.start, wanted.end)
        tags = [partitions.get_tags_for_partition_key(key) for key in keys]
    # A step that is tried again goes on where it stopped.
    made = _made_before(step) if attempt else frozenset()
    said = 0.0
    for number, key in enumerate(keys, start=1):
        # The last one is made in any case: its outputs are those of the step.
        if key in made and number < len(keys):
            step.log.info(f"Partition {number} of {len(keys)}: {key} is made already.")
            continue
        if time.monotonic() - said > SAY_SECONDS:
            step.log.info(f"Partition {number} of {len(keys)}: {key}")
            said = time.monotonic()
        unsaid = _BOUNDS if number == len(keys) else (*_BOUNDS, *_TYPES)
        yield from _run_key(step, key, tags[number - 1], unsaid)
    took = (time.monotonic() - started) * 1000
    yield DagsterEvent.step_success_event(step, StepSuccessData(duration_ms=took))  # type: ignore[no-untyped-call]


def _run_key(
    step: StepExecutionContext, key: str, tags: Mapping[str, str], unsaid: Collection[str]
) -> Iterator[DagsterEvent]:
    try:
        for event in core_dagster_event_sequence_for_step(_for_key(step, tags, unsaid)):
            if event.event_type_value not in unsaid:
                yield event
    except Exception as error:
        error.add_note(f"It failed for the partition {key}.")
        raise


def _for_key(
    step: StepExecutionContext, tags: Mapping[str, str], unsaid: Collection[str]
) -> StepExecutionContext:
    """Return the context of a step as it would be in a run for one partition."""

    def is_said(record: LogRecord) -> bool:
        if not has_log_record_event(record):
            return True
        return get_log_record_event(record).event_type_value not in unsaid

    run = step.dagster_run
    others = {name: value for name, value in run.tags.items() if name not in _RANGE}
    log = step.log.with_tags()
    log.addFilter(is_said)
    return StepExecutionContext(
        plan_data=step.plan_data._replace(dagster_run=run.with_tags({**others, **tags})),
        execution_data=step._execution_data,
        log_manager=log,
        step=step.step,
        output_capture=step.output_capture,
        known_state=step.get_known_state(),
        event_loop=step.event_loop,
    )


_RANGE = frozenset({RANGE_START, RANGE_END})


def _made_before(step: StepExecutionContext) -> frozenset[str]:
    """Return the keys that earlier attempts of a step have made."""
    wanted = set(step.assets_def.keys) if step.assets_def else set()
    made = made_in_run(step.instance, step.run_id)
    return frozenset(key for key, assets in made.items() if assets >= wanted)


def made_in_run(instance: DagsterInstance, run_id: str) -> Mapping[str, frozenset[AssetKey]]:
    """Return the assets that a run has made so far, by key; not those that a check has refused."""
    kinds = {DagsterEventType.ASSET_MATERIALIZATION, DagsterEventType.ASSET_CHECK_EVALUATION}
    made: defaultdict[str, set[AssetKey]] = defaultdict(set)
    last: dict[AssetKey, str] = {}
    for entry in instance.all_logs(run_id, of_type=kinds):
        event: Any = entry.dagster_event
        if event.is_step_materialization:
            if event.partition is not None:
                made[event.partition].add(event.asset_key)
                last[event.asset_key] = event.partition
        elif _is_refusal(event.asset_check_evaluation_data):
            asset = event.asset_check_evaluation_data.asset_key
            made[last.get(asset, "")].discard(asset)
    return {key: frozenset(assets) for key, assets in made.items()}


def _is_refusal(check: AssetCheckEvaluation) -> bool:
    is_grave = check.blocking and check.severity is AssetCheckSeverity.ERROR
    return bool(is_grave and not check.passed)
