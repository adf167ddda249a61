"""One run for several partitions: Python assets are computed key by key, in order.

Dagster marks a run for a range of partitions by two tags and calls the asset's function once for
the whole range. Most functions can handle one partition only, so a step launcher (a Dagster
resource) starts the steps of such assets. In an ordinary run it does what Dagster does. In a run
for a range it does that for each key in turn, as if the run were for this key alone: it loads the
inputs, calls the function, writes the outputs and records the materialization before the next key
starts. If a key fails, the keys before it stay materialized.

An asset whose decorator has a backfill policy handles ranges itself and gets the whole range.
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
    StepExecutionContext,
    StepLauncher,
    partition_loading_context,
)

from floe.orchestration.dagster_internals import (
    StepSuccessData,
    copy_step_context,
    core_dagster_event_sequence_for_step,
    get_log_record_event,
    has_log_record_event,
)
from floe.orchestration.loading import AnyPartitions, Loading, Parts

RESOURCE = "floe_ranges"
RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
_BOUNDS = (
    DagsterEventType.STEP_START.value,
    DagsterEventType.STEP_RESTARTED.value,
    DagsterEventType.STEP_SUCCESS.value,
)
"""Events at the start and end of a step: logged once for a step, not for each key."""
_TYPES = (DagsterEventType.STEP_INPUT.value, DagsterEventType.STEP_OUTPUT.value)
"""Type checks have no partition, so only the last key logs them."""
LOG_INTERVAL_SECONDS = 1.0
"""Limits progress messages: every line is a write to Dagster's database."""


def build_ranges(loading: Loading, parts: Parts) -> Parts:
    """Compute assets without a backfill policy key by key in a run for a range."""
    return replace(
        parts,
        assets=tuple(_run_per_key(asset) for asset in parts.assets),
        resources={**parts.resources, **per_key_resources()},
    )


def per_key_resources() -> dict[str, ResourceDefinition]:
    """Return the resource that assets computed key by key need."""
    resource = ResourceDefinition.hardcoded_resource(
        PerKeyLauncher(), "Computes one partition after the other in a run for several."
    )
    return {RESOURCE: resource}


def runs_per_key(asset: AssetsDefinition) -> bool:
    """Tell whether an asset is computed key by key in a run for a range."""
    return isinstance(asset.node_def, OpDefinition) and (
        RESOURCE in asset.node_def.required_resource_keys
    )


def keys_in_range(partitions: AnyPartitions, start: str, end: str) -> Sequence[str]:
    """Return the keys of a range, both ends included, in the order of computation.

    With several dimensions, all keys of a date come before those of the next date.
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
    places = {date: index for index, date in enumerate(dates)}
    return sorted(keys, key=lambda key: places[_part(key, dimension)])


def _part(key: str, dimension: str) -> str:
    assert isinstance(key, MultiPartitionKey), "Dagster returns MultiPartitionKey"
    return key.keys_by_dimension[dimension]


def _run_per_key(asset: AssetsDefinition | AssetSpec) -> AssetsDefinition | AssetSpec:
    if not isinstance(asset, AssetsDefinition) or not asset.is_materializable:
        return asset
    if asset.backfill_policy is not None or not isinstance(asset.node_def, OpDefinition):
        return asset
    if runs_per_key(asset):
        return asset
    # This is how Dagster itself copies an asset with one attribute changed.
    return AssetsDefinition.dagster_internal_init(
        **{**asset.get_attributes_dict(), "node_def": _with_launcher(asset.node_def)}
    )


def _with_launcher(op: OpDefinition) -> OpDefinition:
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


class PerKeyLauncher(StepLauncher):
    """Runs a step once for each partition key of a range."""

    def __init__(self) -> None:
        # Not super().__init__(): it warns to use Pipes instead, but those are for remote steps.
        pass

    def launch_step(self, step_context: StepExecutionContext) -> Iterator[DagsterEvent]:
        """Run a step; in a run for a range, once for each key."""
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
    # A retried step continues where it stopped.
    done = _made_before(step) if attempt else frozenset()
    logged_at = 0.0
    for index, key in enumerate(keys, start=1):
        # The last key always runs, because its outputs are those of the step.
        if key in done and index < len(keys):
            step.log.info(f"Partition {index} of {len(keys)}: {key} is materialized already.")
            continue
        if time.monotonic() - logged_at > LOG_INTERVAL_SECONDS:
            step.log.info(f"Partition {index} of {len(keys)}: {key}")
            logged_at = time.monotonic()
        hidden = _BOUNDS if index == len(keys) else (*_BOUNDS, *_TYPES)
        yield from _run_key(step, key, tags[index - 1], hidden)
    took = (time.monotonic() - started) * 1000
    yield DagsterEvent.step_success_event(step, StepSuccessData(duration_ms=took))  # type: ignore[no-untyped-call]


def _run_key(
    step: StepExecutionContext, key: str, tags: Mapping[str, str], hidden: Collection[str]
) -> Iterator[DagsterEvent]:
    try:
        for event in core_dagster_event_sequence_for_step(_for_key(step, tags, hidden)):
            if event.event_type_value not in hidden:
                yield event
    except Exception as error:
        error.add_note(f"It failed for the partition {key}.")
        raise


def _for_key(
    step: StepExecutionContext, tags: Mapping[str, str], hidden: Collection[str]
) -> StepExecutionContext:
    """Return the step context as it would be in a run for one partition."""

    def is_shown(record: LogRecord) -> bool:
        if not has_log_record_event(record):
            return True
        return get_log_record_event(record).event_type_value not in hidden

    run = step.dagster_run
    others = {name: value for name, value in run.tags.items() if name not in _RANGE}
    log = step.log.with_tags()
    log.addFilter(is_shown)
    return copy_step_context(step, run.with_tags({**others, **tags}), log)


_RANGE = frozenset({RANGE_START, RANGE_END})


def _made_before(step: StepExecutionContext) -> frozenset[str]:
    """Return the keys that earlier attempts of a step materialized."""
    wanted = set(step.assets_def.keys) if step.assets_def else set()
    by_key = made_in_run(step.instance, step.run_id)
    return frozenset(key for key, assets in by_key.items() if assets >= wanted)


def made_in_run(instance: DagsterInstance, run_id: str) -> Mapping[str, frozenset[AssetKey]]:
    """Return the assets a run materialized, by key, without rejected ones."""
    kinds = {DagsterEventType.ASSET_MATERIALIZATION, DagsterEventType.ASSET_CHECK_EVALUATION}
    by_key: defaultdict[str, set[AssetKey]] = defaultdict(set)
    last: dict[AssetKey, str] = {}
    for entry in instance.all_logs(run_id, of_type=kinds):
        event: Any = entry.dagster_event
        if event.is_step_materialization:
            if event.partition is not None:
                by_key[event.partition].add(event.asset_key)
                last[event.asset_key] = event.partition
        elif _is_rejection(event.asset_check_evaluation_data):
            asset = event.asset_check_evaluation_data.asset_key
            by_key[last.get(asset, "")].discard(asset)
    return {key: frozenset(assets) for key, assets in by_key.items()}


def _is_rejection(check: AssetCheckEvaluation) -> bool:
    is_blocking_error = check.blocking and check.severity is AssetCheckSeverity.ERROR
    return bool(is_blocking_error and not check.passed)
