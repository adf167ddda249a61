"""What the builders have made so far. Each takes these parts and returns them with its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dagster import (
    AssetChecksDefinition,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    Definitions,
    PartitionsDefinition,
)

if TYPE_CHECKING:
    from dagster import ExecutorDefinition

AnyPartitions = PartitionsDefinition[Any]


@dataclass(frozen=True)
class Parts:
    """Definitions under way."""

    partitions: Mapping[str, AnyPartitions] = field(default_factory=dict)
    """Partition definitions by the name that floe.yaml gives them."""
    assets: tuple[AssetsDefinition | AssetSpec, ...] = ()
    checks: tuple[AssetChecksDefinition, ...] = ()
    origins: Mapping[AssetKey, str] = field(default_factory=dict)
    """The file of each asset that was written in Python, relative to the project's folder."""
    jobs: Mapping[str, Any] = field(default_factory=dict)
    """Jobs by the name that floe.yaml gives them."""
    schedules: tuple[Any, ...] = ()
    sensors: tuple[Any, ...] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    executor: "ExecutorDefinition | None" = None

    @cached_property
    def specs(self) -> Mapping[AssetKey, AssetSpec]:
        """Every asset by its key."""
        found: dict[AssetKey, AssetSpec] = {}
        for one in self.assets:
            for spec in [one] if isinstance(one, AssetSpec) else one.specs:
                found[spec.key] = spec
        return found

    @cached_property
    def executable(self) -> frozenset[AssetKey]:
        """The keys of the assets that are made here; others only appear here."""
        made = (one for one in self.assets if isinstance(one, AssetsDefinition))
        return frozenset(key for one in made if one.is_executable for key in one.keys)

    def definitions(self) -> Definitions:
        """Return what Dagster loads."""
        return Definitions(
            assets=self.assets,
            asset_checks=self.checks,
            jobs=list(self.jobs.values()),
            schedules=self.schedules,
            sensors=self.sensors,
            resources=self.resources,
            executor=self.executor,
        )
