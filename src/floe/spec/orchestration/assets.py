"""Assets: what applies to every Python asset, dbt model and process output of a pattern."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from floe.spec.base import SpecModel
from floe.spec.names import Name
from floe.spec.values import Cron, Zone


class BackfillPolicy(SpecModel):
    """How many partitions one run of a backfill takes."""

    max_partitions_per_run: Annotated[int, Field(ge=1)] | None = None
    """At most so many; without a number one run takes them all."""


def _by_name(value: Any) -> Any:
    names = {"single_run": {}, "multi_run": {"max_partitions_per_run": 1}}
    return names.get(value, value) if isinstance(value, str) else value


PolicyOrName = Annotated[
    BackfillPolicy,
    BeforeValidator(
        _by_name, json_schema_input_type=Literal["single_run", "multi_run"] | BackfillPolicy
    ),
]


class AssetConfig(SpecModel):
    """Settings for the assets that a pattern matches; the more specific pattern wins."""

    partitions: str | None = None
    """The partition definition that they follow."""
    automation_condition: Literal["eager", "on_cron", "on_missing"] | None = None
    """When they are made by themselves: when upstream changes, by the clock, or when missing."""
    cron_schedule: Cron | None = None
    """With `on_cron`: when."""
    timezone: Zone | None = None
    """With `on_cron`: the zone, when not that of the project."""
    backfill_policy: PolicyOrName | None = None
    """How many partitions one run takes: single_run, multi_run, or {max_partitions_per_run: N}."""
    group_name: Name | None = None
    """The group they are shown in."""
    compute_kind: str | None = None
    """The technology shown on them."""
