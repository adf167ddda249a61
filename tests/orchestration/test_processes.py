"""Processes as assets: their definitions, and what their runs do."""

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
from floe.orchestration.external_assets import build_external
from floe.orchestration.io_manager import build_io_manager
from floe.orchestration.loading import Parts, load
from floe.orchestration.processes import (
    build_process_jobs,
    build_processes,
    process_job_name,
    without_cycles,
)
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
    result = [asset for asset in parts.assets if isinstance(asset, AssetsDefinition)]
    return next(item for item in result if item.is_executable and item.node_def.name == op)


def test_each_output_of_a_process_is_an_asset_that_depends_on_its_inputs(tmp_path: Path) -> None:
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


def test_a_second_writer_of_a_dataset_has_its_own_asset_key(tmp_path: Path) -> None:
    parts = parts_of(tmp_path)
    assert made_by(parts, "risk__limits_first").key == AssetKey(["risk", "limits"])
    beside = made_by(parts, "risk__limits_second").key
    assert beside == AssetKey(["risk_limits_second", "risk", "limits"])


def test_a_process_and_an_asset_with_the_same_key_are_rejected_at_load(tmp_path: Path) -> None:
    from dagster import asset

    @asset(key=["risk", "totals"])
    def totals() -> None: ...

    with pytest.raises(SpecError) as caught:
        parts_of(tmp_path, before=Parts(assets=(totals,)))
    assert (
        "processes.risk.totals_daily.outputs.totals: 'risk.totals' is also produced by a Python "
        "asset" in str(caught.value)
    )


def test_reading_ones_own_output_of_the_previous_day_is_no_cycle(tmp_path: Path) -> None:
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


def test_each_process_that_datasets_trigger_has_a_job(tmp_path: Path) -> None:
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
    """A project whose processes sum the trades of a day and report on them."""
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
    """The materializations of a run, by asset and partition."""
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
def test_a_run_creates_versions_that_the_catalog_and_dagster_show(
    night: Workshop, instance: DagsterInstance
) -> None:
    tags = {"floe/business_date": str(TUESDAY)}
    result = make(night, instance, TOTALS_KEY, REPORT_KEY, tags=tags)
    assert result.success
    reported = materialized(result)
    assert reported["risk/totals", None] | {"dagster/column_schema": 0, "floe/bytes": 0} == {
        "floe/version": "2026-09-01.1",
        "floe/run": str(run_id(result.run_id, "risk__totals_daily")),
        "floe/snapshot": reported["risk/totals", None]["floe/snapshot"],
        "floe/reads": [{"dataset": "raw.trades", "version": "2026-09-01.1"}],
        "floe/checked": True,
        "floe/bytes": 0,
        "dagster/row_count": 1,
        "dagster/column_schema": 0,
    }
    (check,) = result.get_asset_check_evaluations()
    assert (check.check_name, check.passed) == ("no_negative", True)
    with night.open() as project, project.workspace.catalog.reading() as session:
        run = find_run(session, reported["risk/report", None]["floe/run"])
        assert run is not None
        assert (run.status, run.parent_run_uuid) == ("SUCCESS", result.run_id)

    # The same feed again: no new version is registered; downstream is computed again.
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
    ("deliver", "expected"),
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
    night: Workshop, instance: DagsterInstance, deliver: Any, expected: str
) -> None:
    path = night.root / f"landing/{TUESDAY}/trades.csv"
    path.unlink()
    deliver(path)
    result = make(night, instance, TOTALS_KEY, tags={"floe/business_date": str(TUESDAY)})
    assert expected in why(result).description
    assert "\n" not in why(result).description


@pytest.mark.java
@pytest.mark.slow
def test_a_range_of_partitions_runs_in_order_and_a_failure_keeps_earlier_ones(
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
        "version for 2026-09-02 (delivered by another system)."
    )
    reported = materialized(failed)
    assert {partition: item["floe/version"] for (_, partition), item in reported.items()} == {
        "2026-08-31": "2026-08-31.1",
        "2026-09-01": "2026-09-01.1",
    }
    assert instance.get_materialized_partitions(TOTALS_KEY) == {"2026-08-31", "2026-09-01"}

    night.deliver(WEDNESDAY, (3, 3.0))
    done = make(night, instance, TOTALS_KEY, tags=days)
    assert done.success
    reported = materialized(done)
    assert [partition for _, partition in reported] == ["2026-08-31", "2026-09-01", "2026-09-02"]
    assert len({item["floe/run"] for item in reported.values()}) == 3
    assert [check.passed for check in done.get_asset_check_evaluations()] == [True] * 3
    with night.open() as project:
        assert [version.version_tag for version in project.versions("risk.totals")] == [
            "2026-08-31.1",
            "2026-09-01.1",
            "2026-08-31.2",
            "2026-09-01.2",
            "2026-09-02.1",
        ]


@pytest.mark.java
@pytest.mark.slow
def test_regions_run_one_by_one_and_read_their_own_versions(
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
def test_a_repeated_step_in_the_same_run_writes_nothing(
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
def test_terminating_a_dagster_run_cancels_its_process(
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
        # Terminate the run as Dagster does: report it, then interrupt its process.
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


UPSTREAM = {"report": ["totals"], "totals": ["trades"]}


def test_dependencies_that_would_close_a_cycle_are_left_out() -> None:
    assert without_cycles(UPSTREAM, ["totals"], ["report", "totals"]) == []


def test_dependencies_without_a_cycle_are_kept() -> None:
    assert without_cycles(UPSTREAM, ["totals"], ["trades", "rates"]) == ["trades", "rates"]
