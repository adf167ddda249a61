"""The demo shop: under 50 lines of YAML, plain assets, and an asset for every dbt model."""

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, DagsterInstance, Definitions, ExecuteInProcessResult

from floe.execution.spark.server import stop_server
from floe.execution.workspace import load_site
from floe.orchestration.loading import Parts
from floe.settings import ProjectPaths
from floe.spec import validate_project
from tests.orchestration.projects import load_definitions, load_parts

pytestmark = pytest.mark.slow

DEMO = Path(__file__).parents[2] / "demo" / "data_engineering"
BRONZE = {f"bronze.raw_{name}" for name in ("customers", "products", "orders", "order_items")}
MODELS = {
    "silver.stg_customers",
    "silver.stg_orders",
    "silver.stg_products",
    "silver.stg_order_items",
    "gold.customer_orders",
    "gold.revenue_by_product",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo as it is after a clone."""
    generated = shutil.ignore_patterns(".floe", "target", "logs", "__pycache__")
    folder = tmp_path_factory.mktemp("demo") / "shop"
    return Path(shutil.copytree(DEMO, folder, ignore=generated))


@pytest.fixture(scope="module")
def parts(shop: Path) -> Parts:
    return load_parts(shop)


def upstream(parts: Parts, name: str) -> set[str]:
    return {".".join(dep.asset_key.path) for dep in parts.specs[AssetKey(name.split("."))].deps}


def test_the_orchestration_is_under_fifty_lines_of_yaml() -> None:
    assert len((DEMO / "floe.yaml").read_text().splitlines()) < 50
    assert not validate_project(ProjectPaths(DEMO), {}).findings


def test_definitions_only_call_the_factory() -> None:
    tree = ast.parse((DEMO / "orchestration/definitions.py").read_text())
    _, imported, assigned = tree.body
    assert ast.unparse(imported) == "from floe import FloeDefinitions"
    assert ast.unparse(assigned) == "definitions = FloeDefinitions.from_compiled_artifacts()"


def test_each_dbt_model_is_an_asset_of_its_own(parts: Parts) -> None:
    names = {".".join(key.path) for key in parts.executable}
    assert names == BRONZE | MODELS | {"gold.daily_revenue", "ops.best_sellers"}


def test_lineage_goes_from_bronze_through_each_silver_model_to_gold(parts: Parts) -> None:
    for name in ("customers", "products", "orders", "order_items"):
        assert upstream(parts, f"silver.stg_{name}") == {f"bronze.raw_{name}"}
    assert upstream(parts, "gold.customer_orders") == {
        name for name in MODELS if name.startswith("silver.")
    }
    assert upstream(parts, "ops.best_sellers") == {"gold.revenue_by_product"}


def test_bronze_and_the_incremental_model_have_a_partition_for_each_day(parts: Parts) -> None:
    daily = {".".join(key.path) for key, spec in parts.specs.items() if spec.partitions_def}
    assert daily >= BRONZE | {"gold.daily_revenue"}
    assert not daily & MODELS


def test_the_schedule_runs_only_if_the_environment_enables_it(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = []
    for enabled in ("false", "true"):
        monkeypatch.setenv("SCHEDULE_ENABLED", enabled)
        schedules = {schedule.name: schedule for schedule in load_parts(shop).schedules}
        nightly = schedules["nightly"]
        states.append(nightly.default_status.value)
    assert states == ["STOPPED", "RUNNING"]


@pytest.fixture(scope="module")
def definitions(shop: Path) -> Iterator[Definitions]:
    yield load_definitions(shop)
    stop_server(load_site(ProjectPaths(shop)))


def rows_of(result: ExecuteInProcessResult) -> dict[str, Any]:
    materializations = [
        event.materialization for event in result.get_asset_materialization_events()
    ]
    return {
        ".".join(materialization.asset_key.path): materialization.metadata[
            "dagster/row_count"
        ].value
        for materialization in materializations
        if "dagster/row_count" in materialization.metadata
    }


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_day_is_computed_from_bronze_to_gold_and_the_next_day_adds_its_rows(
    definitions: Definitions,
) -> None:
    job = definitions.resolve_job_def("shop")
    with DagsterInstance.ephemeral() as instance:
        first = job.execute_in_process(instance=instance, partition_key="2026-01-05")
        second = job.execute_in_process(instance=instance, partition_key="2026-01-06")
    assert first.success
    assert second.success
    first_rows, second_rows = rows_of(first), rows_of(second)
    assert set(first_rows) == BRONZE | MODELS | {"gold.daily_revenue"}
    # Bronze has only the rows of the day; everything downstream has both days.
    assert {first_rows[name] == second_rows[name] for name in BRONZE} == {True}
    assert second_rows["silver.stg_customers"] == 2 * first_rows["silver.stg_customers"]
    assert (first_rows["gold.daily_revenue"], second_rows["gold.daily_revenue"]) == (1, 2)
    assert all(check.passed for check in second.get_asset_check_evaluations())
    assert len(second.get_asset_check_evaluations()) == 11
