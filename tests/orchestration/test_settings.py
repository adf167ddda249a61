"""Patterns apply to every kind of asset, the more specific one wins, and conflicts are said."""

from pathlib import Path

import pytest
from dagster import AssetsDefinition, BackfillPolicy

from floe.orchestration.settings import specificity
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
        one.op.name: one.backfill_policy
        for one in parts.assets
        if isinstance(one, AssetsDefinition) and one.is_executable
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


def test_a_pattern_that_spells_out_more_is_more_specific() -> None:
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
        "floe.yaml:13: orchestration.assets.bronze.o*.group_name: '*e.orders' gives "
        "'bronze.orders' another group_name, and neither pattern is more specific. "
        "Write what holds for it under 'bronze.orders'."
    )


def test_equally_specific_patterns_may_say_the_same(tmp_path: Path) -> None:
    project(tmp_path, '"bronze.o*": {group_name: a}', '"*e.orders": {group_name: a}')
    assert spec_of(load_parts(tmp_path), "bronze.orders").group_name == "a"


def test_a_pattern_that_matches_nothing_is_a_mistake(tmp_path: Path) -> None:
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
        ("silver.fixed: {partitions: daily}", "'silver.fixed' has another partitions in mine.py"),
        ("bronze.customers: {group_name: b}", "'bronze.customers' has another group_name in"),
        ("bronze.customers: {compute_kind: b}", "'bronze.customers' has another compute_kind in"),
        (
            "gold.one: {partitions: daily}",
            "one function makes gold.one, gold.two, which would then differ in partitions",
        ),
        ("legacy.feed: {automation_condition: eager}", "nothing in this project makes legacy.feed"),
    ],
)
def test_what_contradicts_the_code_is_refused(tmp_path: Path, setting: str, words: str) -> None:
    project(tmp_path, setting)
    (finding,) = refusal(tmp_path)
    assert finding.startswith("floe.yaml:13: orchestration.assets.")
    assert words in finding


def test_different_policies_for_one_function_are_refused(tmp_path: Path) -> None:
    project(
        tmp_path,
        "gold.one: {backfill_policy: single_run}",
        "gold.two: {backfill_policy: multi_run}",
    )
    assert [line.split(": ")[1] for line in refusal(tmp_path)] == [
        "orchestration.assets.gold.one.backfill_policy",
        "orchestration.assets.gold.two.backfill_policy",
    ]


def test_what_the_code_says_too_is_no_contradiction(tmp_path: Path) -> None:
    setting = "bronze.customers: {group_name: raw, compute_kind: python}"
    project(tmp_path, setting)
    spec = spec_of(load_parts(tmp_path), "bronze.customers")
    assert (spec.group_name, spec.kinds) == ("raw", {"python"})


def test_one_pattern_partitions_all_that_a_function_makes(tmp_path: Path) -> None:
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


def test_the_partitions_of_a_dataset_reach_its_asset(tmp_path: Path) -> None:
    make_project(tmp_path, DATED + '  assets: {"risk.*": {partitions: hourly, group_name: r}}\n')
    parts = load_parts(tmp_path)
    daily, hourly = parts.partitions["daily"], parts.partitions["hourly"]
    found = {
        name: spec_of(parts, name).partitions_def
        for name in ("feeds.trades", "risk.exposure", "risk.report")
    }
    # The dataset's own declaration is more specific than the pattern.
    assert found == {"feeds.trades": daily, "risk.exposure": daily, "risk.report": hourly}
    assert spec_of(parts, "risk.exposure").group_name == "r"


def test_a_pattern_with_the_name_of_a_dataset_must_give_the_same_partitions(
    tmp_path: Path,
) -> None:
    make_project(tmp_path, DATED + '  assets: {"risk.exposure": {partitions: hourly}}\n')
    (finding,) = refusal(tmp_path)
    assert finding.startswith(
        "floe.yaml:14: orchestration.assets.risk.exposure.partitions: 'risk.exposure' gives"
    )


def test_validate_and_load_refuse_a_backfill_of_assets_without_partitions(tmp_path: Path) -> None:
    more = """  jobs: {night: {type: batch, selection: [risk.report]}}
  backfills:
    week: {job: night, partition_range: {start: 2026-09-01, end: 2026-09-02}}
"""
    make_project(tmp_path, DATED + more)
    found = [str(one) for one in validate_project(ProjectPaths(tmp_path), {}).findings]
    assert found == [
        "floe.yaml:16: orchestration.backfills.week.job: the assets of 'night' have no "
        "partitions. Give them some under orchestration.assets, or name another job."
    ]
    assert refusal(tmp_path) == found
