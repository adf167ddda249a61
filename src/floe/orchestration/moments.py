"""From the partitions of a run to business dates: what each key is, and in which order."""

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING

from dagster import (
    Failure,
    PartitionsDefinition,
)

from floe.clock import DATE_RANGE, is_business_date
from floe.errors import FloeError
from floe.execution.assets import Moment
from floe.orchestration.partitions import business_date_of
from floe.spec.identity import BUSINESS_DATE_TAG, default_business_date

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
    """Return the business date of a run without a time partition: its tag's, else today's."""
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

    Something unpartitioned that runs along with a partition is made for that one's date.
    """
    if BUSINESS_DATE_TAG not in step.run_tags and step.has_partition_key:
        found = date_of_key(step.partition_key, step.run_partitions_def)
        if found is not None:
            return found
    try:
        return business_date(step.run_tags, zone)
    except WrongBusinessDateError as error:
        raise Failure(str(error)) from None


def moment_of_key(key: str, definition: PartitionsDefinition[str] | None, default: date) -> Moment:
    """Return what a partition key stands for; without time in it, for the default date.

    A key that says no more than the date is no partition beside it: the same version is meant
    when somebody runs for that date.
    """
    day = date_of_key(key, definition) or default
    return Moment(day, None if key == day.isoformat() else key)


def date_of_key(key: str, definition: PartitionsDefinition[str] | None) -> date | None:
    """Return the date of the time dimension of a key; None if it has none."""
    return None if definition is None else business_date_of(definition, key)
