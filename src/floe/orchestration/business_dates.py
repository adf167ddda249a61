"""Convert between partition keys and business dates."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from dagster import (
    DagsterInstance,
    Failure,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    PartitionsDefinition,
    TimeWindowPartitionsDefinition,
)

from floe.clock import DATE_RANGE, is_business_date
from floe.errors import FloeError
from floe.execution.asset_versions import VersionKey
from floe.orchestration.loading import AnyPartitions
from floe.spec.identity import BUSINESS_DATE_TAG, business_date_of_key, default_business_date

if TYPE_CHECKING:
    from dagster import StepExecutionContext


class WrongBusinessDateError(FloeError):
    """The business date of a run is invalid or out of range."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"The run's tag {BUSINESS_DATE_TAG} is '{text}', which is not a business date. "
            f"Write it as 2026-09-01, {DATE_RANGE}."
        )


def business_date(tags: Mapping[str, str], zone: str) -> date:
    """Return the business date from a run's tag, else the default date."""
    text = tags.get(BUSINESS_DATE_TAG)
    if text is None:
        return default_business_date(zone)
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise WrongBusinessDateError(text) from None
    if not is_business_date(day):
        raise WrongBusinessDateError(text)
    return day


def run_date(step: "StepExecutionContext", zone: str) -> date:
    """Return the business date of a step whose own partition has none.

    An unpartitioned asset in a run with a partition is computed for the date of that partition.
    """
    if BUSINESS_DATE_TAG not in step.run_tags and step.has_partition_key:
        day = date_of_key(step.partition_key, step.run_partitions_def)
        if day is not None:
            return day
    try:
        return business_date(step.run_tags, zone)
    except WrongBusinessDateError as error:
        raise Failure(str(error)) from None


def moment_of_key(
    key: str, definition: PartitionsDefinition[str] | None, default: date
) -> VersionKey:
    """Return the business date and partition of a key; without time, the default date.

    A key that equals the date is no separate partition: it means the same version as a run for
    that date.
    """
    day = date_of_key(key, definition) or default
    return VersionKey(day, None if key == day.isoformat() else key)


def date_of_key(key: str, definition: PartitionsDefinition[str] | None) -> date | None:
    """Return the date of the time dimension of a key, or None."""
    return None if definition is None else business_date_of(definition, key)


def business_date_of(partitions: AnyPartitions, key: str) -> date | None:
    """Return the business date of a partition key, or None.

    It is the day on which the window starts, in the window's time zone. The key is parsed even if
    the definition no longer has it, because versions may exist for it.
    """
    if isinstance(partitions, MultiPartitionsDefinition):
        keys = partitions.get_partition_key_from_str(key).keys_by_dimension
        dates = (
            business_date_of(dimension.partitions_def, keys[dimension.name])
            for dimension in partitions.partitions_defs
        )
        return next((day for day in dates if day is not None), None)
    if isinstance(partitions, TimeWindowPartitionsDefinition):
        return _date_of(partitions, key)
    return None


def _date_of(window: TimeWindowPartitionsDefinition, key: str) -> date | None:
    # When clocks go back, Dagster adds the UTC offset to the second of two equal hours.
    for fmt in (window.fmt, f"{window.fmt}%z"):
        with suppress(ValueError):
            day = business_date_of_key(key, fmt)
            has_day = any(letter in window.fmt for letter in ("%d", "%j", "%x", "%c"))
            return day if has_day else window.start_time_for_partition_key(key).date()
    return None


def keys_of_date(
    partitions: PartitionsDefinition[Any] | None, day: date, instance: DagsterInstance
) -> list[str] | list[None]:
    """Return the partition keys of a business date; [None] without partitions."""
    if partitions is None:
        return [None]
    if isinstance(partitions, TimeWindowPartitionsDefinition):
        key = datetime.combine(day, time()).strftime(partitions.fmt)
        return [key] if partitions.has_partition_key(key) else []
    if isinstance(partitions, MultiPartitionsDefinition):
        return _multi_keys(partitions, day, instance)
    return list(partitions.get_partition_keys(dynamic_partitions_store=instance))


def _multi_keys(
    partitions: MultiPartitionsDefinition, day: date, instance: DagsterInstance
) -> list[str]:
    keys: list[dict[str, str]] = [{}]
    for dimension in partitions.partitions_defs:
        inner = keys_of_date(dimension.partitions_def, day, instance)
        keys = [{**key, dimension.name: part} for key in keys for part in inner if part is not None]
    return [str(MultiPartitionKey(key)) for key in keys]
