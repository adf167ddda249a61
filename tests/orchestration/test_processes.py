"""The processes of floe.yaml as assets: what Dagster shows of them, and what a run of them does."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetCheckKey,
    AssetKey,
    AssetsDefinition,
    DagsterExecutionInterruptedError,
    DagsterInstance,
    DagsterRunStatus,
    ExecuteInProcessResult,
)

from floe.catalog.runs import find_run
from floe.execution.spark.server import Server
from floe.orchestration.external import build_external
from floe.orchestration.io_manager import build_io_manager
from floe.orchestration.loading import load
from floe.orchestration.parts import Parts
from floe.orchestration.process_jobs import build_process_jobs, process_job_name
from floe.orchestration.processes import build_processes
from floe.spec.findings import SpecError
from floe.spec.identity import run_id
from tests.execution.workshop import (
    MONDAY,
    TOTAL_SQL,
    TOTALS,
    TRADES,
    TUESDAY,
    WEDNESDAY,
    Workshop,
)
from tests.orchestration.projects import load_definitions, make_project

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


NIGHT: dict[str, Any] = {
    "datasets": {
        "raw.trades": TRADES,
        "risk.totals": {
            **TOTALS,
            "checks": [{"name": "no_negative", "kind": "range", "column": "amount", "min": 0}],
        },
        "risk.report": {},
    },
    "processes": {
        "risk.totals_daily": {
            "inputs": {"trades": "raw.trades"},
            "outputs": {"totals": "risk.totals"},
            "sql": TOTAL_SQL,
        },
        "risk.report_daily": {
            "inputs": {"totals": "risk.totals"},
            "outputs": {"report": "risk.report"},
            "sql": "select amount from totals",
        },
    },
}
DAILY = {
    "partitions": {"daily": {"type": "time_window", "start": "2026-08-30", "end": "2026-09-10"}},
    "assets": {"risk.*": {"partitions": "daily", "backfill_policy": "single_run"}},
}
TOTALS_KEY, REPORT_KEY = AssetKey(["risk", "totals"]), AssetKey(["risk", "report"])


@pytest.fixture
def night(tmp_path: Path, spark_server: Server, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A project whose processes add up the trades of a day and report on it."""
    shop = Workshop(tmp_path, spark_server)
    shop.declare(**NIGHT)
    shop.deliver(TUESDAY, (1, 10.0), (2, 5.5))
    for name, value in shop.environ.items():
        monkeypatch.setenv(name, value)
    return shop


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as instance:
        yield instance


def make(
    shop: Workshop, instance: DagsterInstance, *keys: AssetKey, **how: Any
) -> ExecuteInProcessResult:
    job = load_definitions(shop.root).resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=instance, asset_selection=list(keys), raise_on_error=False, **how
    )


def why(result: ExecuteInProcessResult) -> Any:
    """The failure of the one step that failed."""
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return event.step_failure_data.user_failure_data


def materialized(result: ExecuteInProcessResult) -> dict[tuple[str, str | None], dict[str, Any]]:
    """What was materialised in a run, by asset and partition."""
    return {
        (event.asset_key.to_user_string(), event.partition): {
            name: value.value
            for name, value in event.step_materialization_data.materialization.metadata.items()
        }
        for event in result.all_events
        if event.is_step_materialization and event.asset_key is not None
    }


@pytest.mark.java
@pytest.mark.slow
def test_a_run_makes_versions_that_the_runner_reports_and_dagster_shows(
    night: Workshop, instance: DagsterInstance
) -> None:
    tags = {"floe/business_date": str(TUESDAY)}
    result = make(night, instance, TOTALS_KEY, REPORT_KEY, tags=tags)
    assert result.success
    told = materialized(result)
    assert told["risk/totals", None] | {"dagster/column_schema": 0, "floe/bytes": 0} == {
        "floe/version": "2026-09-01.1",
        "floe/run": str(run_id(result.run_id, "risk__totals_daily")),
        "floe/snapshot": told["risk/totals", None]["floe/snapshot"],
        "floe/reads": [{"dataset": "raw.trades", "version": "2026-09-01.1"}],
        "floe/checked": True,
        "floe/bytes": 0,
        "dagster/row_count": 1,
        "dagster/column_schema": 0,
    }
    (check,) = result.get_asset_check_evaluations()
    assert (check.check_name, check.passed) == ("no_negative", True)
    with night.open() as project, project.workspace.catalog.reading() as session:
        run = find_run(session, told["risk/report", None]["floe/run"])
        assert run is not None
        assert (run.status, run.parent_run_uuid) == ("SUCCESS", result.run_id)

    # The same feed again: nothing new is registered, and what stands on it is made anew.
    assert make(night, instance, TOTALS_KEY, tags=tags).success
    with night.open() as project:
        assert list(project.states("raw.trades")) == ["2026-09-01.1"]
        assert project.states("risk.totals") == {
            "2026-09-01.1": "SUPERSEDED",
            "2026-09-01.2": "READY",
        }


@pytest.mark.java
@pytest.mark.slow
def test_a_rejected_version_fails_the_step_and_its_check(
    night: Workshop, instance: DagsterInstance
) -> None:
    night.deliver(TUESDAY, (1, -10.0))
    result = make(night, instance, TOTALS_KEY, tags={"floe/business_date": str(TUESDAY)})
    assert why(result).description.startswith("Version 2026-09-01.1 of 'risk.totals' was rejected")
    assert Path(why(result).metadata["floe/log"].value).is_file()
    (check,) = result.get_asset_check_evaluations()
    assert (check.check_name, check.passed) == ("no_negative", False)
    assert not materialized(result)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.parametrize(
    ("deliver", "told"),
    [
        (
            lambda path: path.write_bytes(b"id,amount\n1,many\n"),
            "The delivery of 'raw.trades' was rejected: trades.csv line 2: 'many' is not a double",
        ),
        (
            lambda path: path.symlink_to("/etc/passwd"),
            "The delivery of 'raw.trades' was rejected: the symbolic link landing/2026-09-01/",
        ),
        (lambda path: path.symlink_to("nowhere"), "points to nowhere, which does not exist."),
    ],
)
def test_a_bad_delivery_fails_the_step_in_one_sentence(
    night: Workshop, instance: DagsterInstance, deliver: Any, told: str
) -> None:
    path = night.root / f"landing/{TUESDAY}/trades.csv"
    path.unlink()
    deliver(path)
    result = make(night, instance, TOTALS_KEY, tags={"floe/business_date": str(TUESDAY)})
    assert told in why(result).description
    assert "\n" not in why(result).description


@pytest.mark.java
@pytest.mark.slow
def test_a_range_of_partitions_is_run_in_order_and_a_failure_keeps_the_earlier_ones(
    night: Workshop, instance: DagsterInstance
) -> None:
    night.declare(**NIGHT, orchestration=DAILY)
    night.deliver(MONDAY, (1, 1.0))
    days = {
        "dagster/asset_partition_range_start": str(MONDAY),
        "dagster/asset_partition_range_end": str(WEDNESDAY),
    }
    failed = make(night, instance, TOTALS_KEY, tags=days)
    assert why(failed).description == (
        "'risk.totals_daily' cannot run for 2026-09-02: 'raw.trades' has no READY "
        "version for 2026-09-02 (delivered by others)."
    )
    told = materialized(failed)
    assert {partition: one["floe/version"] for (_, partition), one in told.items()} == {
        "2026-08-31": "2026-08-31.1",
        "2026-09-01": "2026-09-01.1",
    }
    assert instance.get_materialized_partitions(TOTALS_KEY) == {"2026-08-31", "2026-09-01"}

    night.deliver(WEDNESDAY, (3, 3.0))
    done = make(night, instance, TOTALS_KEY, tags=days)
    assert done.success
    told = materialized(done)
    assert [partition for _, partition in told] == ["2026-08-31", "2026-09-01", "2026-09-02"]
    assert len({one["floe/run"] for one in told.values()}) == 3
    assert [check.passed for check in done.get_asset_check_evaluations()] == [True] * 3
    with night.open() as project:
        assert [one.version_tag for one in project.versions("risk.totals")] == [
            "2026-08-31.1",
            "2026-09-01.1",
            "2026-08-31.2",
            "2026-09-01.2",
            "2026-09-02.1",
        ]


@pytest.mark.java
@pytest.mark.slow
def test_regions_are_run_one_by_one_and_read_their_own(
    night: Workshop, instance: DagsterInstance
) -> None:
    night.declare(
        {"risk.regions": {}, "risk.sums": {}},
        {
            "regions": {
                "outputs": {"regions": "risk.regions"},
                "sql": "select :partition as region, 1 as amount",
            },
            "sums": {
                "inputs": {"regions": "risk.regions"},
                "outputs": {"sums": "risk.sums"},
                "sql": "select region, sum(amount) as amount from regions group by region",
            },
        },
        orchestration={
            "partitions": {"regions": {"type": "static", "partition_keys": ["EU", "US"]}},
            "assets": {"risk.*": {"partitions": "regions"}},
        },
    )
    keys = [AssetKey(["risk", "regions"]), AssetKey(["risk", "sums"])]
    tags = {"floe/business_date": str(TUESDAY)}
    for region in ("EU", "US"):
        assert make(night, instance, keys[0], partition_key=region, tags=tags).success
    for region in ("EU", "US"):
        assert make(night, instance, keys[1], partition_key=region, tags=tags).success
    with night.open() as project:
        assert project.states("risk.regions") == {"EU.1": "READY", "US.1": "READY"}
        assert project.rows("risk.sums", "EU.1") == [("EU", 1)]
        assert project.rows("risk.sums", "US.1") == [("US", 1)]


@pytest.mark.java
@pytest.mark.slow
def test_a_step_that_is_done_again_in_the_same_run_writes_nothing(
    night: Workshop, instance: DagsterInstance
) -> None:
    shop_tags = {"floe/business_date": str(TUESDAY)}
    first = make(night, instance, TOTALS_KEY, tags=shop_tags)
    own_id = materialized(first)["risk/totals", None]["floe/run"]
    with night.open() as project:
        again = project.run("risk.totals_daily", how={"run_id": own_id})
        assert again.repeated
        assert list(project.states("risk.totals")) == ["2026-09-01.1"]


@pytest.mark.java
@pytest.mark.slow
def test_the_end_of_a_dagster_run_ends_its_process_in_good_order(
    night: Workshop, instance: DagsterInstance
) -> None:
    night.declare(
        {"risk.slow": {"format": "files", "location": "out/{version}"}},
        {
            "slow": {
                "outputs": {"slow": "risk.slow"},
                "command": ["sh", "-c", "touch started && sleep 120"],
            }
        },
    )

    def stop_once_started() -> None:
        while not (night.root / "started").exists():
            time.sleep(0.1)
        # What whoever terminates a run does: say so, and interrupt its process.
        (run,) = instance.get_runs()
        instance.report_run_canceling(run)
        os.kill(os.getpid(), signal.SIGINT)

    stopper = threading.Thread(target=stop_once_started, daemon=True)
    stopper.start()
    job = load_definitions(night.root).resolve_implicit_global_asset_job_def()
    with pytest.raises(DagsterExecutionInterruptedError):
        job.execute_in_process(instance=instance)
    stopper.join()
    (record,) = instance.get_run_records()
    assert record.dagster_run.status == DagsterRunStatus.CANCELED
    own_id = str(run_id(record.dagster_run.run_id, "slow"))
    with night.open() as project, project.workspace.catalog.reading() as session:
        run = find_run(session, own_id)
        assert run is not None
        assert run.status == "CANCELLED"
