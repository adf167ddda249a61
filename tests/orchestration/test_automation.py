"""Assets that are made by themselves: asked of Dagster as its daemon asks."""

from datetime import date, datetime, time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetSelection,
    AutomationConditionSensorDefinition,
    DagsterInstance,
    DefaultSensorStatus,
    Definitions,
    EvaluateAutomationConditionsResult,
    evaluate_automation_conditions,
)

from floe.orchestration.automation import SENSOR
from floe.spec import SpecError
from tests.orchestration.projects import load_definitions, load_parts, make_project

ASSETS = """
    from dagster import AssetSpec, asset

    feed = AssetSpec(["legacy", "feed"])

    @asset(key_prefix="bronze", deps=[feed])
    def orders() -> None: ...
"""
HEAD = """
name: test
timezone: Europe/London
orchestration:
  asset_modules: [mine]
  partitions:
    week: {type: time_window, start: 2026-09-01, end: 2026-09-08}
  assets:
"""
LONDON = ZoneInfo("Europe/London")
ORDERS, FEED = AssetKey(["bronze", "orders"]), AssetKey(["legacy", "feed"])


def project(folder: Path, *patterns: str) -> Definitions:
    body = "".join(f"    {pattern}\n" for pattern in patterns)
    return load_definitions(make_project(folder, HEAD + body, {"mine.py": ASSETS}))


def sensor_of(definitions: Definitions) -> AutomationConditionSensorDefinition:
    sensor = definitions.get_repository_def().get_sensor_def(SENSOR)
    assert isinstance(sensor, AutomationConditionSensorDefinition)
    return sensor


def evaluate(
    definitions: Definitions,
    instance: DagsterInstance,
    before: EvaluateAutomationConditionsResult | None = None,
    at: datetime | None = None,
) -> EvaluateAutomationConditionsResult:
    selection = AssetSelection.assets(ORDERS)
    return evaluate_automation_conditions(
        definitions,
        instance,
        selection,
        evaluation_time=at,
        cursor=before.cursor if before else None,
    )


def test_its_sensor_runs_without_being_started(tmp_path: Path) -> None:
    definitions = project(tmp_path, "bronze.orders: {automation_condition: eager}")
    sensor = sensor_of(definitions)
    assert sensor.default_status == DefaultSensorStatus.RUNNING
    assert sensor.minimum_interval_seconds == 5
    found = {one.name for one in definitions.get_repository_def().sensor_defs}
    assert "default_automation_condition_sensor" not in found


def test_without_automation_there_is_no_sensor(tmp_path: Path) -> None:
    make_project(tmp_path, HEAD + "    bronze.orders: {group_name: raw}\n", {"mine.py": ASSETS})
    assert SENSOR not in [sensor.name for sensor in load_parts(tmp_path).sensors]


def test_eager_follows_what_comes_from_upstream(tmp_path: Path) -> None:
    definitions = project(tmp_path, "bronze.orders: {automation_condition: eager}")
    with DagsterInstance.ephemeral() as instance:
        instance.report_runless_asset_event(AssetMaterialization(FEED))
        instance.report_runless_asset_event(AssetMaterialization(ORDERS))
        first = evaluate(definitions, instance)
        assert first.total_requested == 0
        instance.report_runless_asset_event(AssetMaterialization(FEED))
        second = evaluate(definitions, instance, first)
        assert second.get_requested_partitions(ORDERS) == {None}
        third = evaluate(definitions, instance, second)
        assert third.total_requested == 0


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"], ids=["forward", "back"])
def test_on_cron_ticks_in_the_projects_zone_when_the_clocks_change(
    tmp_path: Path, day: str
) -> None:
    setting = '{automation_condition: on_cron, cron_schedule: "0 7 * * *"}'
    definitions = project(tmp_path, f"bronze.orders: {setting}")
    times = [time(6, 58), time(6, 59), time(7, 1)]
    moments = [datetime.combine(date.fromisoformat(day), one, LONDON) for one in times]
    requested: list[int] = []
    result = None
    with DagsterInstance.ephemeral() as instance:
        for moment in moments:
            instance.report_runless_asset_event(AssetMaterialization(FEED))
            result = evaluate(definitions, instance, result, moment)
            requested.append(result.total_requested)
    assert requested == [0, 0, 1]


def test_on_missing_fills_in_every_partition_that_lacks(tmp_path: Path) -> None:
    definitions = project(
        tmp_path, "bronze.orders: {automation_condition: on_missing, partitions: week}"
    )
    with DagsterInstance.ephemeral() as instance:
        nothing = evaluate(definitions, instance)
        assert nothing.total_requested == 0, "what it is made from is not there"
        instance.report_runless_asset_event(AssetMaterialization(FEED))
        made = AssetMaterialization(ORDERS, partition="2026-09-02")
        instance.report_runless_asset_event(made)
        first = evaluate(definitions, instance, nothing)
        wanted = {f"2026-09-0{day}" for day in (1, 3, 4, 5, 6, 7)}
        assert first.get_requested_partitions(ORDERS) == wanted


def test_what_starts_by_itself_is_not_automated_as_well(tmp_path: Path) -> None:
    floe_yaml = """
        name: test
        datasets: {a.in: {}, a.out: {}}
        processes:
          p: {inputs: {i: a.in}, outputs: {o: a.out}, trigger: dataset, sql: select * from i}
        orchestration:
          assets:
            a.out: {automation_condition: eager}
    """
    make_project(tmp_path, floe_yaml)
    with pytest.raises(SpecError, match=r"'a\.out' is made by 'p', which starts by itself"):
        load_parts(tmp_path)
