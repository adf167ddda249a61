"""What the builders have made so far. Each takes these parts and returns them with its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dagster import AssetChecksDefinition, AssetKey, AssetsDefinition, AssetSpec, Definitions

if TYPE_CHECKING:
    from dagster import ExecutorDefinition


@dataclass(frozen=True)
class Parts:
    """Definitions under way."""

    assets: tuple[AssetsDefinition | AssetSpec, ...] = ()
    checks: tuple[AssetChecksDefinition, ...] = ()
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
