"""Patterns apply to every kind of asset; the more specific wins; conflicts are reported."""

from datetime import date, datetime, time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetsDefinition,
    AssetSelection,
    AutomationConditionSensorDefinition,
    BackfillPolicy,
    DagsterInstance,
    DefaultSensorStatus,
    Definitions,
    EvaluateAutomationConditionsResult,
    evaluate_automation_conditions,
)

from floe.orchestration.asset_settings import SENSOR, specificity
from floe.settings import ProjectPaths
from floe.spec import SpecError, validate_project
from tests.orchestration.projects import load_definitions, load_parts, make_project, spec_of

ASSETS = """
    from dagster import AssetSpec, DailyPartitionsDefinition, asset, multi_asset

    feed = AssetSpec(["legacy", "feed"])

    @asset(key_prefix="bronze", group_name="raw", kinds={"python"})
    def customers(): ...

    @asset(key_prefix="bronze")
    def orders(): ...

    @asset(key_prefix="silver", partitions_def=DailyPartitionsDefinition("2020-01-01"))
    def fixed(): ...

    @multi_asset(specs=[AssetSpec(["gold", "one"]), AssetSpec(["gold", "two"])])
    def both(): ...
"""
HEAD = """
name: test
datasets:
  bronze.positions: {}
processes:
  load_positions: {outputs: {p: bronze.positions}, sql: select 1 as x}
orchestration:
  asset_modules: [mine]
  partitions:
    daily: {type: time_window, start: 2026-09-01}
    hourly: {type: time_window, start: 2026-09-01, cron_schedule: "@hourly", fmt: "%Y-%m-%d-%H"}
  assets:
"""


def project(folder: Path, *patterns: str) -> Path:
    body = "".join(f"    {pattern}\n" for pattern in patterns)
    return make_project(folder, HEAD + body, {"mine.py": ASSETS})


def refusal(folder: Path) -> list[str]:
    with pytest.raises(SpecError) as stopped:
        load_parts(folder)
    return str(stopped.value).splitlines()


@pytest.mark.parametrize("pattern", ["bronze.*", "bronze/*", "bronze/**", "*"])
def test_a_pattern_applies_to_python_assets_and_processes_alike(
    tmp_path: Path, pattern: str
) -> None:
    leave_out = '"silver.fixed": {}' if pattern == "*" else "bronze.orders: {}"
    setting = "{automation_condition: eager}"
    project(tmp_path, f'"{pattern}": {setting}', leave_out)
    parts = load_parts(tmp_path)
    for name in ("bronze.customers", "bronze.orders", "bronze.positions"):
        assert spec_of(parts, name).automation_condition is not None
    load_definitions(tmp_path)


def test_every_setting_reaches_its_asset_and_the_rest_is_kept(tmp_path: Path) -> None:
    project(
        tmp_path,
        '"bronze.orders": {partitions: daily, group_name: landing, compute_kind: spark, '
        "backfill_policy: {max_partitions_per_run: 7}}",
        '"bronze.c*": {partitions: daily, backfill_policy: single_run}',
    )
    parts = load_parts(tmp_path)
    orders, customers = spec_of(parts, "bronze.orders"), spec_of(parts, "bronze.customers")
    assert orders.partitions_def == customers.partitions_def == parts.partitions["daily"]
    assert (orders.group_name, orders.kinds) == ("landing", {"spark"})
    assert (customers.group_name, customers.kinds) == ("raw", {"python"})
    policies = {
        asset.op.name: asset.backfill_policy
        for asset in parts.assets
        if isinstance(asset, AssetsDefinition) and asset.is_executable
    }
    assert policies["bronze__orders"] == BackfillPolicy.multi_run(7)
    assert policies["bronze__customers"] == BackfillPolicy.single_run()


def test_the_more_specific_pattern_wins_for_each_setting(tmp_path: Path) -> None:
    project(
        tmp_path,
        '"*": {group_name: all, compute_kind: spark}',
        '"bronze.*": {group_name: landing, partitions: daily}',
        '"bronze.orders": {partitions: hourly}',
        '"bronze.customers": {group_name: raw, compute_kind: python}',
    )
    parts = load_parts(tmp_path)
    orders = spec_of(parts, "bronze.orders")
    assert orders.partitions_def == parts.partitions["hourly"]
    assert (orders.group_name, orders.kinds) == ("landing", {"spark"})
    assert spec_of(parts, "bronze.positions").partitions_def == parts.partitions["daily"]
    assert spec_of(parts, "legacy.feed").group_name == "all"


def test_a_pattern_with_more_literal_characters_is_more_specific() -> None:
    rising = ["*", "?", "bronze.*", "bronze.?*", "bronze.[ab]c*", "bronze.orde*", "bronze.orders"]
    assert sorted(rising, key=specificity) == [
        "*", "?", "bronze.*", "bronze.?*", "bronze.[ab]c*", "bronze.orde*", "bronze.orders",
    ]  # fmt: skip
    assert specificity("bronze.*") == specificity("bronze.?*")
    assert specificity("bronze.?") > specificity("bronze.*")


def test_equally_specific_patterns_must_agree(tmp_path: Path) -> None:
    project(
        tmp_path,
        '"bronze.o*": {group_name: a, partitions: daily}',
        '"*e.orders": {group_name: b, partitions: daily}',
    )
    (finding,) = refusal(tmp_path)
    assert finding == (
        "floe.yaml:13: orchestration.assets.bronze.o*.group_name: '*e.orders' sets a "
        "different group_name for 'bronze.orders', and neither pattern is more specific. "
        "Set it under 'bronze.orders'."
    )


def test_equally_specific_patterns_may_agree(tmp_path: Path) -> None:
    project(tmp_path, '"bronze.o*": {group_name: a}', '"*e.orders": {group_name: a}')
    assert spec_of(load_parts(tmp_path), "bronze.orders").group_name == "a"


def test_a_pattern_that_matches_no_asset_is_rejected(tmp_path: Path) -> None:
    project(tmp_path, "bronze.custmers: {group_name: a}", '"x.*": {group_name: a}')
    near, far = refusal(tmp_path)
    assert near == (
        "floe.yaml:13: orchestration.assets.bronze.custmers: matches no asset. "
        "Did you mean 'bronze.customers'?"
    )
    assert far.startswith(
        "floe.yaml:14: orchestration.assets.x.*: matches no asset. Choose one of: bronze.customers"
    )


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (
            "silver.fixed: {partitions: daily}",
            "'silver.fixed' has a different partitions in mine.py",
        ),
        ("bronze.customers: {group_name: b}", "'bronze.customers' has a different group_name in"),
        (
            "bronze.customers: {compute_kind: b}",
            "'bronze.customers' has a different compute_kind in",
        ),
        (
            "gold.one: {partitions: daily}",
            "one function computes gold.one, gold.two, which would then differ in partitions",
        ),
        (
            "legacy.feed: {automation_condition: eager}",
            "no asset or process of this project produces legacy.feed",
        ),
    ],
)
def test_settings_that_contradict_the_code_are_rejected(
    tmp_path: Path, setting: str, words: str
) -> None:
    project(tmp_path, setting)
    (finding,) = refusal(tmp_path)
    assert finding.startswith("floe.yaml:13: orchestration.assets.")
    assert words in finding


def test_different_backfill_policies_for_one_function_are_rejected(tmp_path: Path) -> None:
    project(
        tmp_path,
        "gold.one: {backfill_policy: single_run}",
        "gold.two: {backfill_policy: multi_run}",
    )
    assert [line.split(": ")[1] for line in refusal(tmp_path)] == [
        "orchestration.assets.gold.one.backfill_policy",
        "orchestration.assets.gold.two.backfill_policy",
    ]


def test_settings_that_equal_those_of_the_code_are_accepted(tmp_path: Path) -> None:
    setting = "bronze.customers: {group_name: raw, compute_kind: python}"
    project(tmp_path, setting)
    spec = spec_of(load_parts(tmp_path), "bronze.customers")
    assert (spec.group_name, spec.kinds) == ("raw", {"python"})


def test_one_pattern_partitions_all_assets_of_a_function(tmp_path: Path) -> None:
    project(tmp_path, '"gold.*": {partitions: daily}')
    parts = load_parts(tmp_path)
    assert spec_of(parts, "gold.one").partitions_def == parts.partitions["daily"]
    load_definitions(tmp_path)


DATED = """
name: test
datasets:
  feeds.trades: {format: csv, location: "landing/{business_date}/*.csv", partitions: daily}
  risk.exposure: {partitions: daily}
  risk.report: {}
processes:
  exposure: {inputs: {t: feeds.trades}, outputs: {e: risk.exposure}, sql: select 1 as x}
  report: {inputs: {e: risk.exposure}, outputs: {r: risk.report}, sql: select 1 as x}
orchestration:
  partitions:
    daily: {type: time_window, start: 2026-09-01}
    hourly: {type: time_window, start: 2026-09-01, cron_schedule: "@hourly", fmt: "%Y-%m-%d-%H"}
"""


def test_the_partitions_of_a_dataset_apply_to_its_asset(tmp_path: Path) -> None:
    make_project(tmp_path, DATED + '  assets: {"risk.*": {partitions: hourly, group_name: r}}\n')
    parts = load_parts(tmp_path)
    daily, hourly = parts.partitions["daily"], parts.partitions["hourly"]
    result = {
        name: spec_of(parts, name).partitions_def
        for name in ("feeds.trades", "risk.exposure", "risk.report")
    }
    # The dataset's own declaration is more specific than the pattern.
    assert result == {"feeds.trades": daily, "risk.exposure": daily, "risk.report": hourly}
    assert spec_of(parts, "risk.exposure").group_name == "r"


def test_a_pattern_with_the_name_of_a_dataset_must_set_the_same_partitions(
    tmp_path: Path,
) -> None:
    make_project(tmp_path, DATED + '  assets: {"risk.exposure": {partitions: hourly}}\n')
    (finding,) = refusal(tmp_path)
    assert finding.startswith(
        "floe.yaml:14: orchestration.assets.risk.exposure.partitions: 'risk.exposure' sets a "
        "different partitions for 'risk.exposure'"
    )


def test_validate_and_load_refuse_a_backfill_of_assets_without_partitions(tmp_path: Path) -> None:
    more = """  jobs: {night: {type: batch, selection: [risk.report]}}
  backfills:
    week: {job: night, partition_range: {start: 2026-09-01, end: 2026-09-02}}
"""
    make_project(tmp_path, DATED + more)
    result = [str(finding) for finding in validate_project(ProjectPaths(tmp_path), {}).findings]
    assert result == [
        "floe.yaml:16: orchestration.backfills.week.job: the assets of 'night' have no "
        "partitions. Declare partitions under orchestration.assets, or name another job."
    ]
    assert refusal(tmp_path) == result


AUTOMATED_ASSETS = """
    from dagster import AssetSpec, asset

    feed = AssetSpec(["legacy", "feed"])

    @asset(key_prefix="bronze", deps=[feed])
    def orders() -> None: ...
"""
AUTOMATED_HEAD = """
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


def automated_project(folder: Path, *patterns: str) -> Definitions:
    body = "".join(f"    {pattern}\n" for pattern in patterns)
    return load_definitions(
        make_project(folder, AUTOMATED_HEAD + body, {"mine.py": AUTOMATED_ASSETS})
    )


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


def test_the_automation_sensor_runs_by_default(tmp_path: Path) -> None:
    definitions = automated_project(tmp_path, "bronze.orders: {automation_condition: eager}")
    sensor = sensor_of(definitions)
    assert sensor.default_status == DefaultSensorStatus.RUNNING
    assert sensor.minimum_interval_seconds == 5
    result = {sensor.name for sensor in definitions.get_repository_def().sensor_defs}
    assert "default_automation_condition_sensor" not in result


def test_without_automation_there_is_no_sensor(tmp_path: Path) -> None:
    floe_yaml = AUTOMATED_HEAD + "    bronze.orders: {group_name: raw}\n"
    make_project(tmp_path, floe_yaml, {"mine.py": AUTOMATED_ASSETS})
    assert SENSOR not in [sensor.name for sensor in load_parts(tmp_path).sensors]


def test_eager_reacts_to_upstream_materializations(tmp_path: Path) -> None:
    definitions = automated_project(tmp_path, "bronze.orders: {automation_condition: eager}")
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
def test_on_cron_ticks_in_the_time_zone_of_the_project_when_clocks_change(
    tmp_path: Path, day: str
) -> None:
    setting = '{automation_condition: on_cron, cron_schedule: "0 7 * * *"}'
    definitions = automated_project(tmp_path, f"bronze.orders: {setting}")
    times = [time(6, 58), time(6, 59), time(7, 1)]
    moments = [datetime.combine(date.fromisoformat(day), time, LONDON) for time in times]
    requested: list[int] = []
    result = None
    with DagsterInstance.ephemeral() as instance:
        for moment in moments:
            instance.report_runless_asset_event(AssetMaterialization(FEED))
            result = evaluate(definitions, instance, result, moment)
            requested.append(result.total_requested)
    assert requested == [0, 0, 1]


def test_on_missing_fills_every_missing_partition(tmp_path: Path) -> None:
    definitions = automated_project(
        tmp_path, "bronze.orders: {automation_condition: on_missing, partitions: week}"
    )
    with DagsterInstance.ephemeral() as instance:
        nothing = evaluate(definitions, instance)
        assert nothing.total_requested == 0, "what it is made from is not there"
        instance.report_runless_asset_event(AssetMaterialization(FEED))
        result = AssetMaterialization(ORDERS, partition="2026-09-02")
        instance.report_runless_asset_event(result)
        first = evaluate(definitions, instance, nothing)
        wanted = {f"2026-09-0{day}" for day in (1, 3, 4, 5, 6, 7)}
        assert first.get_requested_partitions(ORDERS) == wanted


def test_an_output_of_a_triggered_process_cannot_be_automated(tmp_path: Path) -> None:
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
    with pytest.raises(SpecError, match=r"'a\.out' is written by 'p', which floe starts"):
        load_parts(tmp_path)
