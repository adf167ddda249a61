"""The partitions, time window and business date that a dbt step runs for."""

from dataclasses import dataclass
from datetime import datetime

from dagster import (
    AssetExecutionContext,
    AssetKey,
    MultiPartitionsDefinition,
    TimeWindowPartitionsDefinition,
)

from floe.execution.asset_versions import VersionKey
from floe.orchestration.business_dates import business_date, moment_of_key
from floe.orchestration.loading import AnyPartitions


@dataclass(frozen=True)
class Window:
    """What a step runs for."""

    moment: VersionKey
    """The business date of models without partitions."""
    moments: tuple[tuple[str, VersionKey], ...] = ()
    """The partition keys, each with its business date and partition."""
    start: datetime | None = None
    end: datetime | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The window as dbt variables."""
        variables = {"floe_business_date": self.moment.business_date.isoformat()}
        if self.moments:
            keys = [key for key, _ in self.moments]
            variables["floe_partition_key"] = (
                keys[0] if len(keys) == 1 else f"{keys[0]}...{keys[-1]}"
            )
        if self.start is not None and self.end is not None:
            variables["floe_start"], variables["floe_end"] = (
                self.start.isoformat(),
                self.end.isoformat(),
            )
        return variables


def window_of(context: AssetExecutionContext, zone: str) -> Window:
    """Return the window of a step."""
    today = business_date(context.run.tags, zone)
    if not context.has_partition_key and not context.has_partition_key_range:
        return Window(VersionKey(today))
    definition = _definition(context)
    keys = _keys(context, definition)
    moments = tuple((key, moment_of_key(key, definition, today)) for key in keys)
    last = moments[-1][1].business_date
    start, end = _bounds(definition, keys)
    return Window(VersionKey(last), moments, start, end)


def is_partitioned(context: AssetExecutionContext, key: AssetKey) -> bool:
    """Tell whether an asset of the step has partitions."""
    return context.assets_def.specs_by_key[key].partitions_def is not None


def _definition(context: AssetExecutionContext) -> AnyPartitions | None:
    """Return the run's partitions, even if the step's assets have none."""
    return context.job_def.partitions_def or context.assets_def.partitions_def


def _keys(context: AssetExecutionContext, definition: AnyPartitions | None) -> list[str]:
    if definition is not None:
        return list(context.partition_keys)
    ends = context.partition_key_range
    return list(dict.fromkeys([ends.start, ends.end]))


def _bounds(
    definition: AnyPartitions | None, keys: list[str]
) -> tuple[datetime | None, datetime | None]:
    if isinstance(definition, MultiPartitionsDefinition) and definition.has_time_window_dimension:
        dimension = definition.time_window_dimension
        parts = [definition.get_partition_key_from_str(key).keys_by_dimension for key in keys]
        return _bounds(dimension.partitions_def, [part[dimension.name] for part in parts])
    if not isinstance(definition, TimeWindowPartitionsDefinition):
        return None, None
    windows = [definition.time_window_for_partition_key(key) for key in keys]
    return min(window.start for window in windows), max(window.end for window in windows)
