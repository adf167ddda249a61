"""dbt runs in the process of a step: what it makes is told as it comes, and has a version."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetKey,
    DagsterEventType,
    DagsterInstance,
    Definitions,
    ExecuteInProcessResult,
)

from floe.execution.site import Site
from floe.execution.spark.server import Server
from floe.execution.spark.session import interrupt
from floe.orchestration import FloeDefinitions
from floe.orchestration.dbt.build import Build, NodeResult
from floe.orchestration.dbt.dbt_project import find_dbt
from floe.orchestration.dbt.manifest import load_manifest
from floe.orchestration.dbt.step import _under_way
from floe.orchestration.loading import load
from floe.orchestration.runtime import open_runtime
from tests.orchestration.dbt.bank import MACRO, PROJECT
from tests.orchestration.projects import make_project

pytestmark = [pytest.mark.java, pytest.mark.slow]

FLOE_YAML = """
timezone: Europe/London
transforms:
  - {type: dbt, path: dbt}
datasets:
  dbt_gold.per_day: {partition_column: day}
orchestration:
  asset_modules: [reports]
  partitions: {daily: {type: time_window, start: "2026-01-01"}}
  assets: {dbt_gold.per_day: {partitions: daily}, reports.of_day: {partitions: daily}}
"""
REPORTS = """
from dagster import AssetIn, MaterializeResult, asset


@asset(
    key=["reports", "counted"],
    ins={"days": AssetIn(["dbt_silver", "days"]), "shown": AssetIn(["dbt_gold", "shown"])},
)
def counted(days, shown) -> MaterializeResult:
    made_for = days.first().made_for
    return MaterializeResult(metadata={"made_for": made_for, "shown": shown.count()})


@asset(key=["reports", "of_day"], ins={"per_day": AssetIn(["dbt_gold", "per_day"])})
def of_day(per_day) -> MaterializeResult:
    return MaterializeResult(metadata={"days": sorted({str(row.day) for row in per_day.collect()})})
"""
FILES = {
    "reports.py": REPORTS,
    "dbt/dbt_project.yml": PROJECT.replace("schema: silver", "schema: dbt_silver").replace(
        "schema: gold", "schema: dbt_gold"
    ),
    "dbt/macros/generate_schema_name.sql": MACRO,
    "dbt/models/silver/days.sql": """
        select id, date_add(date'2026-01-01', cast(id as int)) as day,
               '{{ var("floe_business_date", "") }}' as made_for
        from range(5)
    """,
    "dbt/models/silver/days_only.sql": """
        {{ config(materialized='ephemeral') }} select day from {{ ref('days') }}
        where day >= '{{ var("floe_start", "2000-01-01") }}'
    """,
    "dbt/models/gold/shown.sql": """
        {{ config(materialized='view') }} select * from {{ ref('days') }}
    """,
    "dbt/models/gold/slow.sql": """
        select id, reflect('java.lang.Thread', 'sleep', cast(200 as bigint)) as slept
        from range(0, 15, 1, 1) where id >= (select min(id) from {{ ref('days') }})
    """,
    "dbt/models/gold/very_slow.sql": """
        select id, reflect('java.lang.Thread', 'sleep', cast(200 as bigint)) as slept
        from range(0, 1000, 1, 1)
    """,
    "dbt/models/gold/per_day.sql": """
        {{ config(materialized='incremental', incremental_strategy='append') }}
        select day, '{{ var("floe_partition_key", "") }}' as key from {{ ref('days_only') }}
        where day < cast('{{ var("floe_end", "2100-01-01") }}' as date)
    """,
    "dbt/models/gold/broken.sql": "select nonsense from {{ ref('days') }}",
    "dbt/models/gold/foreign.sql": "select list_value(1, 2) as both from {{ ref('days') }}",
    "dbt/models/gold/foreign_too.sql": "select id::json[0:1] from {{ ref('days') }}",
    "dbt/models/gold/python_model.py": """
        def model(dbt, session):
            return dbt.ref("days")
    """,
    "dbt/models/gold/on_broken.sql": "select * from {{ ref('broken') }}",
    "dbt/models/gold/picky.sql": "select id from {{ ref('days') }}",
    "dbt/models/gold/on_picky.sql": "select id from {{ ref('picky') }}",
    "dbt/models/gold/gold.yml": """
        models:
          - name: picky
            columns:
              - name: id
                data_tests:
                  - accepted_values: {arguments: {values: [0, 1], quote: false}}
                  - not_null
          - name: shown
            columns:
              - name: id
                data_tests:
                  - accepted_values:
                      arguments: {values: [0, 1], quote: false}
                      config: {severity: warn}
    """,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, spark_server: Server) -> Path:
    """A project whose models are built on the shared Spark server of the tests."""
    platform = json.dumps({"compute": {"default": {"url": spark_server.url}}})
    folder = tmp_path_factory.mktemp("running")
    return make_project(folder, FLOE_YAML, {**FILES, "platform.yaml": platform})


@pytest.fixture(scope="module")
def definitions(folder: Path) -> Definitions:
    return FloeDefinitions.from_compiled_artifacts(folder)


@pytest.fixture(scope="module")
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as instance:
        yield instance


Run = Callable[..., ExecuteInProcessResult]


@pytest.fixture
def run(definitions: Definitions, instance: DagsterInstance) -> Run:
    """Build some models, as Dagster does when they are selected."""

    def run_models(*models: str, **options: Any) -> ExecuteInProcessResult:
        keys = {AssetKey(model.split(".")) for model in models}
        job = definitions.resolve_implicit_global_asset_job_def().get_subset(asset_selection=keys)
        return job.execute_in_process(instance=instance, raise_on_error=False, **options)

    return run_models


def made(result: ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """The metadata of each materialized model."""
    events = result.get_asset_materialization_events()
    materializations = [event.materialization for event in events]
    return {
        ".".join(item.asset_key.path): {name: value.value for name, value in item.metadata.items()}
        for item in materializations
    }


def checked(result: ExecuteInProcessResult) -> dict[str, tuple[bool, str]]:
    return {
        evaluation.check_name: (
            evaluation.passed,
            evaluation.severity.value,
        )
        for evaluation in result.get_asset_check_evaluations()
    }


def test_only_the_models_of_the_step_are_built(run: Run) -> None:
    result = run("dbt_silver.days")
    assert result.success
    assert set(made(result)) == {"dbt_silver.days"}


def test_table_is_tagged_with_its_version_and_reported_with_rows_and_sql(
    run: Run, spark: Any
) -> None:
    before = made(run("dbt_silver.days", tags={"floe/business_date": "2026-02-03"}))
    reported = made(run("dbt_silver.days", tags={"floe/business_date": "2026-02-03"}))
    first, second = before["dbt_silver.days"], reported["dbt_silver.days"]
    assert (first["floe/version"], second["floe/version"]) == ("2026-02-03.1", "2026-02-03.2")
    assert second["dagster/row_count"] == 5
    columns = spark.table("dbt_silver.days").schema.fields
    described = [(column.name, column.type) for column in second["dagster/column_schema"].columns]
    assert described == [(column.name, column.dataType.simpleString()) for column in columns]
    assert "'2026-02-03' as made_for" in second["floe/sql"]
    tags = {row.name: str(row.snapshot_id) for row in spark.table("dbt_silver.days.refs").collect()}
    assert tags["2026-02-03.1"] == first["floe/snapshot"]
    assert tags["2026-02-03.2"] == tags["main"] == second["floe/snapshot"]


def test_model_reports_the_versions_that_it_read(run: Run) -> None:
    day = {"floe/business_date": "2026-02-04"}
    run("dbt_silver.days", tags=day)
    alone = made(run("dbt_gold.shown", tags=day))["dbt_gold.shown"]
    assert alone["floe/reads"] == [{"dataset": "dbt_silver.days", "version": "2026-02-04.1"}]
    both = made(run("dbt_silver.days", "dbt_gold.shown", tags=day))["dbt_gold.shown"]
    assert both["floe/reads"] == [{"dataset": "dbt_silver.days", "version": "2026-02-04.2"}]


def test_view_has_a_version_and_no_snapshot(run: Run) -> None:
    day = {"floe/business_date": "2026-02-05"}
    reported = [made(run("dbt_gold.shown", tags=day))["dbt_gold.shown"] for _ in range(2)]
    assert [item["floe/version"] for item in reported] == ["2026-02-05.1", "2026-02-05.2"]
    assert "floe/snapshot" not in reported[0]


def test_model_is_reported_while_another_is_still_running(
    run: Run, instance: DagsterInstance
) -> None:
    result = run("dbt_silver.days", "dbt_gold.slow")
    records = instance.all_logs(result.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION)
    told_at = {str(record.get_dagster_event().asset_key): record.timestamp for record in records}
    ended = datetime.fromisoformat(made(result)["dbt_gold.slow"]["floe/ended_at"])
    assert told_at[str(AssetKey(["dbt_silver", "days"]))] < ended.timestamp()


def test_failed_model_fails_the_step_with_the_message_of_dbt(run: Run) -> None:
    result = run("dbt_silver.days", "dbt_gold.broken", "dbt_gold.on_broken")
    assert not result.success
    assert set(made(result)) == {"dbt_silver.days"}
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    failure = failed.step_failure_data.user_failure_data
    assert failure is not None
    assert "model broken:" in str(failure.description)
    assert "nonsense" in str(failure.description)
    assert "Skipped because an upstream failed: dbt_gold.on_broken." in str(failure.description)
    reported: Any = failure.metadata["floe/failed"].value
    assert [item["name"] for item in reported] == ["broken"]


def test_sql_of_another_database_and_python_models_fail_with_advice_once(run: Run) -> None:
    models = ("dbt_gold.foreign", "dbt_gold.foreign_too", "dbt_gold.python_model")
    result = run("dbt_silver.days", *models)
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    failure = failed.step_failure_data.user_failure_data
    assert failure is not None
    words = str(failure.description)
    assert "model foreign: Runtime Error in model foreign (models/gold/foreign.sql)" in words
    assert words.count("write it in Spark's dialect") == 1
    assert words.count("dbt-spark runs Python models on Databricks only") == 1
    assert "JVM stacktrace" not in words


def test_failed_test_is_a_failed_check_that_stops_downstream_models(run: Run) -> None:
    result = run("dbt_silver.days", "dbt_gold.picky", "dbt_gold.on_picky")
    assert not result.success
    assert set(made(result)) == {"dbt_silver.days", "dbt_gold.picky"}
    name = "accepted_values_picky_id__False__0__1"
    assert checked(result) == {name: (False, "ERROR"), "not_null_picky_id": (True, "ERROR")}
    assert sorted(made(result)["dbt_gold.picky"]["floe/awaits"]) == [name, "not_null_picky_id"]


def test_warning_is_a_failed_check_and_stops_nothing(run: Run) -> None:
    result = run("dbt_silver.days", "dbt_gold.shown")
    assert result.success
    assert checked(result) == {"accepted_values_shown_id__False__0__1": (False, "WARN")}


def test_partition_writes_only_its_own_rows(run: Run, spark: Any) -> None:
    run("dbt_silver.days")
    result = run("dbt_gold.per_day", partition_key="2026-01-02")
    assert result.success
    (event,) = result.get_asset_materialization_events()
    assert event.partition == "2026-01-02"
    assert made(result)["dbt_gold.per_day"]["floe/version"] == "2026-01-02.1"
    rows = spark.table("dbt_gold.per_day").collect()
    assert [(str(row.day), row.key) for row in rows] == [("2026-01-02", "2026-01-02")]


def test_range_of_partitions_is_one_window_with_a_version_for_each(run: Run, spark: Any) -> None:
    run("dbt_silver.days")
    bounds = {
        "dagster/asset_partition_range_start": "2026-01-03",
        "dagster/asset_partition_range_end": "2026-01-05",
    }
    result = run("dbt_gold.per_day", tags=bounds)
    reported = [event.materialization for event in result.get_asset_materialization_events()]
    versions = {item.partition: item.metadata["floe/version"].value for item in reported}
    days = ["2026-01-03", "2026-01-04", "2026-01-05"]
    assert versions == {day: f"{day}.1" for day in days}
    rows = spark.sql("select day from dbt_gold.per_day where key like '%...%'").collect()
    assert sorted(str(row.day) for row in rows) == days


def test_asset_gets_the_model_that_dbt_just_built_as_a_frame(run: Run) -> None:
    models = ("dbt_silver.days", "dbt_gold.shown")
    result = run(*models, "reports.counted", tags={"floe/business_date": "2026-02-20"})
    assert result.success
    reported = made(result)
    assert reported["reports.counted"]["made_for"] == "2026-02-20"
    assert reported["reports.counted"]["shown"] == 5
    read = {item["dataset"]: item["version"] for item in reported["reports.counted"]["floe/reads"]}
    assert read == {name: reported[name]["floe/version"] for name in models}


def test_partition_of_an_asset_gets_the_rows_of_that_partition(run: Run) -> None:
    run("dbt_silver.days")
    for day in ("2026-01-01", "2026-01-04"):
        result = run("dbt_gold.per_day", "reports.of_day", partition_key=day)
        assert made(result)["reports.of_day"]["days"] == [day]


def test_model_that_was_never_built_cannot_be_read(definitions: Definitions) -> None:
    job = definitions.resolve_implicit_global_asset_job_def()
    counted = job.get_subset(asset_selection={AssetKey(["reports", "counted"])})
    with DagsterInstance.ephemeral() as new:
        result = counted.execute_in_process(instance=new, raise_on_error=False)
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    assert "dbt has not built 'dbt_" in str(failed.event_specific_data)


def test_stopping_the_step_stops_dbt(folder: Path, spark: Any) -> None:
    loading = load(folder)
    project = find_dbt(loading)
    assert project is not None
    names = load_manifest(loading, project)
    nodes = {"model.bank.very_slow", "model.bank.days"}
    with open_runtime(project.site) as runtime, runtime.offered_to_dbt() as session:
        wanted = Build(project, nodes, {}, runtime.session_for_values, names)
        with _under_way(wanted, session) as build:
            first = next(event for event in build.events() if isinstance(event, NodeResult))
            assert first.unique_id == "model.bank.days"
        assert build.ended(0)
        interrupt(session)
    assert not spark.catalog.tableExists("dbt_gold.very_slow")


def test_at_job_level_one_asset_reports_all_built_models(folder: Path, tmp_path: Path) -> None:
    kept = ("project.yml", "schema_name.sql", "days.sql", "shown.sql")
    files = {name: text for name, text in FILES.items() if name.endswith(kept)}
    files["platform.yaml"] = (folder / "platform.yaml").read_text()
    text = "transforms:\n  - {type: dbt}\norchestration: {dbt: {observability_level: job_level}}\n"
    definitions = FloeDefinitions.from_compiled_artifacts(make_project(tmp_path, text, files))
    job = definitions.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(tags={"floe/business_date": "2026-03-01"})
    assert set(made(result)) == {"dbt.bank"}
    assert made(result)["dbt.bank"]["floe/versions"] == {
        "dbt_silver.days": "2026-03-01.1",
        "dbt_gold.shown": "2026-03-01.1",
    }


def test_settings_of_dbt_stay_with_dbt(run: Run, spark_site: Site, spark: Any) -> None:
    assert run("dbt_silver.days").success
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
