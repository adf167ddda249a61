"""The newest partition of a definition, for whatever starts a job without naming one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from dagster import (
    DagsterInstance,
    DynamicPartitionsDefinition,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    TimeWindowPartitionsDefinition,
    partition_loading_context,
)

from floe.orchestration.partitions import latest_key
from floe.orchestration.parts import AnyPartitions


def newest_keys(
    partitions: AnyPartitions, at: datetime | None = None, store: DagsterInstance | None = None
) -> Sequence[str]:
    """Return the newest key; beside a dimension of time, one for each key of the other.

    Keys that are added at run time have to be asked for: the newest is the one added last. Keys
    without order or time are all as new.
    """
    with partition_loading_context(at, store):
        return _newest(partitions, at)


def _newest(partitions: AnyPartitions, at: datetime | None) -> Sequence[str]:
    match partitions:
        case TimeWindowPartitionsDefinition():
            newest = latest_key(partitions, at)
        case DynamicPartitionsDefinition():
            newest = partitions.get_last_partition_key()
        case MultiPartitionsDefinition():
            return _newest_of_time(partitions, at)
        case _:
            return partitions.get_partition_keys()
    return [] if newest is None else [newest]


def _newest_of_time(partitions: MultiPartitionsDefinition, at: datetime | None) -> Sequence[str]:
    keys: list[dict[str, str]] = [{}]
    for dimension in partitions.partitions_defs:
        inner: Any = dimension.partitions_def
        is_time = isinstance(inner, TimeWindowPartitionsDefinition)
        own = _newest(inner, at) if is_time else inner.get_partition_keys()
        keys = [{**key, dimension.name: one} for key in keys for one in own]
    return [MultiPartitionKey(key) for key in keys]
