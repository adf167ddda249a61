"""Projects run unchanged: no schema macro, no file format, own tables as sources."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from dagster import DagsterInstance, Definitions, ExecuteInProcessResult

from floe.execution.spark.server import Server
from floe.orchestration import FloeDefinitions
from tests.orchestration.projects import make_project

pytestmark = [pytest.mark.java, pytest.mark.slow]

FLOE_YAML = """
transforms:
  - {type: dbt, path: dbt, vars: {load_source_data: true}}
"""
PROJECT = """
name: corner_shop
version: "1.0"
config-version: 2
profile: default
seeds:
  corner_shop:
    +schema: shop_raw
    raw: {+enabled: "{{ var('load_source_data', false) }}"}
models:
  corner_shop:
    staging: {+materialized: view}
    marts: {+materialized: table, +schema: shop_marts}
snapshots:
  corner_shop: {+schema: shop_history}
"""
SOURCES = """
sources:
  - name: ecom
    schema: "{{ target.schema }}_shop_raw"
    tables:
      - name: raw_orders
        columns: [{name: id, data_tests: [unique]}]
"""
MODELS = """
models:
  - name: shop_orders
    columns:
      - name: id
        data_tests:
          - not_null: {config: {severity: warn}}
          - relationships: {arguments: {to: "source('ecom', 'raw_orders')", field: id}}
exposures:
  - name: weekly_report
    type: dashboard
    owner: {email: shop@example.com}
    depends_on: [ref('shop_orders')]
"""
FILES = {
    "dbt/dbt_project.yml": PROJECT,
    "dbt/seeds/raw/raw_orders.csv": "id,customer,cents\n1,O'Brien,1050\n2,,99\n",
    "dbt/models/staging/sources.yml": SOURCES,
    "dbt/models/marts/models.yml": MODELS,
    "dbt/models/staging/shop_stg_orders.sql": """
        select id, customer, cents / 100 as amount from {{ source('ecom', 'raw_orders') }}
    """,
    "dbt/models/staging/shop_large.sql": """
        {{ config(materialized='ephemeral') }}
        select * from {{ ref('shop_stg_orders') }} where amount > 5
    """,
    "dbt/models/marts/shop_orders.sql": """
        select s.*, l.id is not null as is_large
        from {{ ref('shop_stg_orders') }} s left join {{ ref('shop_large') }} l on l.id = s.id
    """,
    "dbt/models/marts/shop_seen.sql": """
        {{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
        select id, amount from {{ ref('shop_orders') }}
    """,
    "dbt/snapshots/shop_orders_then.sql": """
        {% snapshot shop_orders_then %}
        {{ config(strategy='check', unique_key='id', check_cols='all') }}
        select * from {{ ref('shop_orders') }}
        {% endsnapshot %}
    """,
}
DATASETS = {
    "shop_raw.raw_orders",
    "shop_stg_orders",
    "shop_marts.shop_orders",
    "shop_marts.shop_seen",
    "shop_history.shop_orders_then",
}


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory, spark_server: Server) -> Definitions:
    platform = json.dumps({"compute": {"default": {"url": spark_server.url}}})
    folder = tmp_path_factory.mktemp("shapes")
    make_project(folder, FLOE_YAML, {**FILES, "platform.yaml": platform})
    return FloeDefinitions.from_compiled_artifacts(folder)


@pytest.fixture(scope="module")
def runs(definitions: Definitions) -> Iterator[list[ExecuteInProcessResult]]:
    """Run the whole project twice: the second run finds the tables of the first."""
    job = definitions.resolve_implicit_global_asset_job_def()
    day = {"floe/business_date": "2026-02-03"}
    with DagsterInstance.ephemeral() as instance:
        yield [
            job.execute_in_process(instance=instance, raise_on_error=False, tags=day)
            for _ in range(2)
        ]


def made(result: ExecuteInProcessResult) -> list[str]:
    events = result.get_asset_materialization_events()
    return [".".join(event.materialization.asset_key.path) for event in events]


def test_whole_project_runs_with_names_without_the_target(
    runs: list[ExecuteInProcessResult],
) -> None:
    for result in runs:
        assert result.success
        assert set(made(result)) == DATASETS


def test_own_seed_that_is_read_as_a_source_is_built_first(
    runs: list[ExecuteInProcessResult],
) -> None:
    order = made(runs[0])
    assert order.index("shop_raw.raw_orders") < order.index("shop_stg_orders")
    events = runs[0].get_asset_materialization_events()
    reported = {".".join(item.asset_key.path): item for item in (e.materialization for e in events)}
    reads: Any = reported["shop_stg_orders"].metadata["floe/reads"].value
    assert [read["dataset"] for read in reads] == ["shop_raw.raw_orders"]


def test_tests_of_own_sources_are_checks_of_the_seed(runs: list[ExecuteInProcessResult]) -> None:
    checks = {
        evaluation.check_name: evaluation for evaluation in runs[0].get_asset_check_evaluations()
    }
    assert checks["source_unique_ecom_raw_orders_id"].asset_key.path == ["shop_raw", "raw_orders"]
    assert all(check.passed for check in checks.values())


def test_tables_have_the_names_of_their_datasets(
    runs: list[ExecuteInProcessResult], spark: Any
) -> None:
    assert runs[1].success
    rows = spark.table("shop_marts.shop_orders").orderBy("id").collect()
    assert [(row.customer, row.is_large) for row in rows] == [("O'Brien", True), (None, False)]
    assert spark.table("shop_marts.shop_seen").count() == 2
    assert spark.table("shop_history.shop_orders_then").count() == 2
    assert spark.table("default.shop_stg_orders").count() == 2


def test_versions_of_the_previous_run_stay(runs: list[ExecuteInProcessResult], spark: Any) -> None:
    assert runs[1].success
    for table in ("shop_orders", "shop_seen"):
        tags = {row.name for row in spark.table(f"shop_marts.{table}.refs").collect()}
        assert tags == {"main", "2026-02-03.1", "2026-02-03.2"}
