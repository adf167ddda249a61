"""The processes of floe.yaml as assets: what Dagster shows of them, and what a run of them does."""

from pathlib import Path

import pytest
from dagster import AssetCheckKey, AssetKey, AssetsDefinition

from floe.orchestration.external import build_external
from floe.orchestration.io_manager import build_io_manager
from floe.orchestration.loading import load
from floe.orchestration.parts import Parts
from floe.orchestration.process_jobs import build_process_jobs, process_job_name
from floe.orchestration.processes import build_processes
from floe.spec.findings import SpecError
from tests.orchestration.projects import make_project

RISK = """
    datasets:
      raw.trades: {format: csv, location: "landing/{business_date}/*.csv"}
      risk.totals:
        description: What was traded in a day.
        category: Credit Risk
        owner: {team: Credit Risk, email: credit-risk@example.com}
        tags: [gold, "end of day"]
        checks:
          - {kind: row_count, min: 1}
          - {name: no_negative, sql: "select count(*) from {dataset} where amount < 0",
             expect: "= 0", description: Amounts are not below zero.}
      risk.limits: {writers: many}
    processes:
      risk.totals_daily:
        inputs: {trades: raw.trades}
        outputs: {totals: risk.totals}
        trigger: dataset
        pool: spark
        sql: select count(*) as trades, sum(amount) as amount from trades
      risk.limits_first:
        inputs: {totals: risk.totals}
        outputs: {limits: risk.limits}
        sql: select * from totals
      risk.limits_second:
        inputs: {totals: risk.totals}
        outputs: {limits: risk.limits}
        sql: select * from totals
"""


def parts_of(folder: Path, floe_yaml: str = RISK, before: Parts | None = None) -> Parts:
    loading = load(make_project(folder, floe_yaml))
    parts = before or Parts()
    for build in (build_processes, build_external, build_io_manager, build_process_jobs):
        parts = build(loading, parts)
    return parts


def made_by(parts: Parts, op: str) -> AssetsDefinition:
    found = [one for one in parts.assets if isinstance(one, AssetsDefinition)]
    return next(one for one in found if one.is_executable and one.node_def.name == op)


def test_each_output_of_a_process_is_an_asset_that_stands_on_its_inputs(tmp_path: Path) -> None:
    spec = parts_of(tmp_path).specs[AssetKey(["risk", "totals"])]
    assert [dep.asset_key for dep in spec.deps] == [AssetKey(["raw", "trades"])]
    assert spec.description == "What was traded in a day."
    assert spec.group_name == "Credit_Risk"
    assert spec.owners == ["credit-risk@example.com", "team:Credit Risk"]
    assert spec.kinds == {"spark", "sql", "iceberg"}
    assert set(spec.tags) >= {"gold", "end_of_day"}
    assert spec.metadata["floe/sql"].startswith("select count(*)")


def test_a_dataset_without_category_is_in_the_group_of_its_schema(tmp_path: Path) -> None:
    assert parts_of(tmp_path).specs[AssetKey(["raw", "trades"])].group_name == "raw"


def test_declared_checks_of_a_dataset_are_asset_checks(tmp_path: Path) -> None:
    totals = made_by(parts_of(tmp_path), "risk__totals_daily")
    key = AssetKey(["risk", "totals"])
    assert totals.check_keys == {
        AssetCheckKey(key, "row_count"),
        AssetCheckKey(key, "no_negative"),
    }
    described = {spec.name: spec.description for spec in totals.check_specs}
    assert described["no_negative"] == "Amounts are not below zero."


def test_the_pool_of_a_process_limits_its_steps(tmp_path: Path) -> None:
    assert made_by(parts_of(tmp_path), "risk__totals_daily").op.pool == "spark"


def test_a_second_writer_of_a_dataset_has_a_key_beside_it(tmp_path: Path) -> None:
    parts = parts_of(tmp_path)
    assert made_by(parts, "risk__limits_first").key == AssetKey(["risk", "limits"])
    beside = made_by(parts, "risk__limits_second").key
    assert beside == AssetKey(["risk_limits_second", "risk", "limits"])


def test_a_process_and_an_asset_of_one_key_refuse_to_load(tmp_path: Path) -> None:
    from dagster import asset

    @asset(key=["risk", "totals"])
    def totals() -> None: ...

    with pytest.raises(SpecError) as caught:
        parts_of(tmp_path, before=Parts(assets=(totals,)))
    assert "processes.risk.totals_daily.outputs.totals: 'risk.totals' is made by an asset" in str(
        caught.value
    )


def test_reading_what_one_made_the_day_before_closes_no_circle(tmp_path: Path) -> None:
    parts = parts_of(
        tmp_path,
        """
        datasets:
          risk.balance: {}
          risk.movements: {}
        processes:
          balance:
            inputs:
              before: {dataset: risk.balance, mapping: previous_day}
              movements: risk.movements
            outputs: {balance: risk.balance}
            sql: select * from movements
          movements:
            inputs: {balance: {dataset: risk.balance, mapping: previous_day}}
            outputs: {movements: risk.movements}
            sql: select * from balance
        """,
    )
    deps = {
        key.to_user_string(): [dep.asset_key.to_user_string() for dep in spec.deps]
        for key, spec in parts.specs.items()
    }
    assert deps == {"risk/balance": ["risk/movements"], "risk/movements": []}
    parts.definitions().resolve_all_job_defs()


def test_processes_that_datasets_start_have_a_job_each(tmp_path: Path) -> None:
    parts = parts_of(tmp_path)
    assert (
        list(parts.jobs) == [process_job_name("risk.totals_daily")] == ["floe__risk__totals_daily"]
    )
    job = parts.definitions().resolve_job_def("floe__risk__totals_daily")
    assert job.tags["floe/process"] == "risk.totals_daily"
    assert [node.name for node in job.nodes] == ["risk__totals_daily"]
