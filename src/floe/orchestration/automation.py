"""Assets that are made by themselves: when upstream changes, by the clock, or when missing."""

from dataclasses import replace
from typing import Any

from dagster import (
    AssetSelection,
    AutomationCondition,
    AutomationConditionSensorDefinition,
    DefaultSensorStatus,
)

from floe.orchestration.loading import Loading
from floe.orchestration.parts import Parts
from floe.spec.orchestration import AssetConfig

Condition = AutomationCondition[Any]
SENSOR = "floe_automation"
SECONDS = 5
"""How often it is looked whether something is to be made: as often as Dagster's daemon looks."""


def condition_of(config: AssetConfig, zone: str) -> Condition | None:
    """Return the condition that a pattern of floe.yaml asks for."""
    match config.automation_condition:
        case "eager":
            return AutomationCondition.eager()
        case "on_cron":
            assert config.cron_schedule is not None, "the rules of floe.yaml ask for it"
            return AutomationCondition.on_cron(config.cron_schedule, config.timezone or zone)
        case "on_missing":
            return _on_missing()
        case None:
            return None


def _on_missing() -> Condition:
    """Ask for every partition that is missing, once what it is made from is there.

    Dagster's own `on_missing` looks at the newest window alone, and only at what came to be
    missing since it was set: nothing would be filled in. One that has failed waits for somebody
    to look at it, or it would fail again and again.
    """
    return (
        AutomationCondition.missing()
        & ~AutomationCondition.in_progress()
        & ~AutomationCondition.execution_failed()
        & ~AutomationCondition.any_deps_missing()
        & ~AutomationCondition.any_deps_in_progress()
    ).with_label("on_missing")


def build_automation(_: Loading, parts: Parts) -> Parts:
    """Add the sensor that watches the conditions; it runs unless somebody stops it.

    Without one Dagster adds its own, which is stopped until somebody starts it.
    """
    automated = any(spec.automation_condition is not None for spec in parts.specs.values())
    own = any(isinstance(one, AutomationConditionSensorDefinition) for one in parts.sensors)
    if not automated or own:
        return parts
    sensor = AutomationConditionSensorDefinition(
        name=SENSOR,
        target=AssetSelection.all(),
        default_status=DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=SECONDS,
        description="Makes assets whose automation_condition asks for it.",
    )
    return replace(parts, sensors=(*parts.sensors, sensor))
