"""Sensors of floe.yaml, which start jobs on events. One module per kind."""

from dataclasses import replace

from dagster import SensorDefinition

from floe.orchestration.loading import Loading, Parts
from floe.orchestration.sensors.asset_sensor import build_asset_sensor
from floe.orchestration.sensors.custom import build_custom
from floe.orchestration.sensors.file_watcher import build_file_watcher
from floe.orchestration.sensors.run_requests import DeclaredSensor
from floe.orchestration.sensors.run_status import build_run_status
from floe.spec.findings import Finding, SpecError
from floe.spec.orchestration import (
    AnySensor,
    AssetSensor,
    CustomSensor,
    FileWatcherSensor,
    RunStatusSensor,
)

__all__ = ["build_sensors"]


def build_sensors(loading: Loading, parts: Parts) -> Parts:
    """Add the sensors that floe.yaml declares; report all errors together."""
    sensors: list[SensorDefinition] = []
    findings: list[Finding] = []
    for name, sensor in loading.site.spec.orchestration.sensors.items():
        try:
            sensors.append(_build(DeclaredSensor(loading, parts, name), sensor))
        except SpecError as error:
            findings += error.findings
    if findings:
        raise SpecError(findings)
    return replace(parts, sensors=(*parts.sensors, *sensors))


def _build(declared: DeclaredSensor, sensor: AnySensor) -> SensorDefinition:
    match sensor:
        case FileWatcherSensor():
            return build_file_watcher(declared, sensor)
        case AssetSensor():
            return build_asset_sensor(declared, sensor)
        case RunStatusSensor():
            return build_run_status(declared, sensor)
        case CustomSensor():
            return build_custom(declared, sensor)
