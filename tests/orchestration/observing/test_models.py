"""Observed dbt steps: each model and each test is reported separately."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetSpec,
    Failure,
    MaterializeResult,
    MetadataValue,
    StaticPartitionsDefinition,
    TableColumn,
    TableSchema,
    asset,
    multi_asset,
)
from sqlalchemy import func, select

from floe.catalog.checks import page_results
from floe.catalog.runs import find_run
from floe.catalog.tables import RunEvent
from floe.catalog.version_queries import list_versions
from floe.catalog.versions import READY, REJECTED
from floe.execution.workspace import open_workspace
from floe.orchestration.loading import Parts, load
from floe.orchestration.observing import index_assets
from floe.spec.identity import run_id
from tests.events.state import state_of
from tests.orchestration.observing.test_observing import Watched, quiet_instance
from tests.orchestration.projects import make_project

pytestmark = pytest.mark.slow

FLOE_YAML = """
datasets:
  bronze.orders:
    format: csv
    location: landing/{business_date}/*.csv
    schema: [{name: id, type: bigint}, {name: amount, type: double}]
"""
SQL = "select id, amount * 2 as doubled from bronze.orders"


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    site = load(make_project(tmp_path / "project", FLOE_YAML)).site
    home = tmp_path / "home"
    home.mkdir()
    with quiet_instance(home) as instance, open_workspace(site) as workspace:
        yield Watched(workspace, instance)


def times(second: int) -> dict[str, str]:
    """Return the metadata with start and end of a part of a step."""
    return {
        "floe/started_at": f"2026-11-16T06:00:{second:02}+00:00",
        "floe/ended_at": f"2026-11-16T06:00:{second + 1:02}+00:00",
    }


def model(name: str, tag: str, sql: str, second: int, **more: Any) -> MaterializeResult[Any]:
    return MaterializeResult(
        asset_key=["silver", name],
        metadata={
            "floe/version": tag,
            "floe/sql": MetadataValue.md(f"```sql\n{sql}\n```"),
            "dagster/row_count": 7,
            **times(second),
            **more,
        },
    )


def verdict(name: str, check: str, *, passed: bool, second: int) -> AssetCheckResult:
    return AssetCheckResult(
        passed=passed,
        asset_key=["silver", name],
        check_name=check,
        severity=AssetCheckSeverity.ERROR,
        description=None if passed else "Got 3 results, configured to fail if != 0",
        metadata=times(second),
    )


def step(events: list[Any], failure: Failure | None = None) -> Any:
    """A step that yields the same events as a dbt step."""

    def spec(name: str, *deps: list[str]) -> AssetSpec:
        unique_id = {"dbt/unique_id": f"model.shop.{name}"}
        return AssetSpec(["silver", name], deps=deps, metadata=unique_id, skippable=True)

    @multi_asset(
        name="dbt_shop",
        specs=[spec("orders", ["bronze", "orders"]), spec("totals", ["silver", "orders"])],
        check_specs=[
            AssetCheckSpec(
                "unique_id",
                asset=["silver", "orders"],
                metadata={"dbt/unique_id": "test.shop.unique_id.abc123"},
            )
        ],
        can_subset=True,
    )
    def dbt_shop() -> Iterator[Any]:
        yield from events
        if failure is not None:
            raise failure

    return dbt_shop


AWAITS = {"floe/awaits": MetadataValue.json(["unique_id"])}
READS = {
    "floe/reads": MetadataValue.json([{"dataset": "silver.orders", "version": "2026-09-01.4"}])
}


def test_each_model_of_a_step_is_a_run_with_its_own_times(watched: Watched) -> None:
    events = [
        model("orders", "2026-09-01.4", SQL, 1),
        verdict("orders", "unique_id", passed=True, second=2),
        model("totals", "2026-09-01.2", "select * from lake.silver.orders", 3, **READS),
    ]
    dagster_run, good = watched.run([step(events)])
    assert good
    watched.look()
    assert watched.runs() == {
        "dagster/test/nightly": ["SUCCESS"],
        "dbt/shop/orders": ["SUCCESS"],
        "dbt/shop/totals": ["SUCCESS"],
        "dbt/shop/unique_id": ["SUCCESS"],
    }
    assert watched.versions("silver.orders") == {"2026-09-01.4": READY}
    with watched.workspace.catalog.reading() as session:
        run = find_run(session, str(run_id(dagster_run, "dbt_shop/silver.orders")))
        assert run is not None
        assert run.start_ts is not None
        assert run.end_ts is not None
        assert (run.start_ts.second, run.end_ts.second) == (1, 2)


def test_a_test_in_a_partitioned_run_refers_to_the_version_of_its_model(watched: Watched) -> None:
    @asset(key=["bronze", "orders"], partitions_def=StaticPartitionsDefinition(["one"]))
    def raw() -> None:
        pass

    events = [
        model("orders", "2026-09-01.4", SQL, 1),
        verdict("orders", "unique_id", passed=True, second=2),
    ]
    _, good = watched.run([raw, step(events)], partition_key="one")
    assert good
    watched.look()
    dataset_id = watched.workspace.dataset_id("silver.orders")
    with watched.workspace.catalog.reading() as session:
        (version,) = list_versions(session, dataset_id)
        (result,) = page_results(session, dataset_id)
        assert result.dataset_version_id == version.dataset_version_id


def test_column_lineage_follows_the_models_of_a_step(watched: Watched) -> None:
    events = [
        model("orders", "2026-09-01.4", SQL, 1),
        model("totals", "2026-09-01.2", "select doubled from lake.silver.orders", 3, **READS),
    ]
    watched.run([step(events)])
    watched.look()
    columns = {
        (source, source_column, target, target_column)
        for source, source_column, target, target_column, *_ in state_of(watched.workspace.catalog)[
            "columns"
        ]
    }
    assert columns == {
        ("lake/bronze.orders", "id", "lake/silver.orders", "id"),
        ("lake/bronze.orders", "amount", "lake/silver.orders", "doubled"),
        ("lake/silver.orders", "doubled", "lake/silver.totals", "doubled"),
    }


def test_a_model_is_reported_once_although_its_inputs_are_reported_later(watched: Watched) -> None:
    schema = TableSchema([TableColumn("id", "bigint"), TableColumn("doubled", "double")])
    events = [
        model("orders", "2026-09-01.4", SQL, 1, **AWAITS, **{"dagster/column_schema": schema}),
        model("totals", "2026-09-01.2", "select * from lake.silver.orders", 3, **READS),
        verdict("orders", "unique_id", passed=True, second=5),
    ]
    watched.run([step(events)])
    for _ in range(2):
        watched.look()
        with watched.workspace.catalog.reading() as session:
            complete = RunEvent.event_type == "run.complete"
            totals = RunEvent.process_key == "dbt/shop/totals"
            assert session.scalar(select(func.count()).where(complete, totals)) == 1
    followed = {item[3] for item in state_of(watched.workspace.catalog)["columns"]}
    assert followed == {"id", "doubled"}


def test_a_model_whose_test_fails_is_rejected_and_was_never_ready(watched: Watched) -> None:
    events = [
        model("orders", "2026-09-01.4", SQL, 1, **AWAITS),
        verdict("orders", "unique_id", passed=False, second=2),
    ]
    watched.run([step(events, Failure("dbt failed.", metadata={"floe/failed": []}))])
    watched.look()
    assert watched.versions("silver.orders") == {"2026-09-01.4": REJECTED}
    assert watched.runs()["dbt/shop/orders"] == ["SUCCESS"]
    assert watched.runs()["dbt/shop/unique_id"] == ["FAILED"]
    kinds = [kind for kind, *_ in state_of(watched.workspace.catalog)["changes"]]
    assert "VERSION_READY" not in kinds
    assert "VERSION_REJECTED" in kinds
    with watched.workspace.catalog.reading() as session:
        dataset_id = watched.workspace.dataset_id("silver.orders", session)
        (version,) = list_versions(session, dataset_id)
        (result,) = page_results(session, dataset_id)
        assert result.dataset_version_id == version.dataset_version_id
    before = state_of(watched.workspace.catalog)
    watched.cursor = None
    watched.look()
    assert state_of(watched.workspace.catalog) == before


def test_a_model_whose_tests_never_ran_is_rejected(watched: Watched) -> None:
    events = [model("orders", "2026-09-01.4", SQL, 1, **AWAITS)]
    watched.run([step(events, Failure("dbt was stopped."))])
    watched.look()
    assert watched.versions("silver.orders") == {"2026-09-01.4": REJECTED}


def test_a_model_is_ready_when_its_tests_have_passed(watched: Watched) -> None:
    seen: list[dict[str, str]] = []

    class Peeks(list[Any]):
        """Observe the run between two events of the step."""

        def __iter__(self) -> Iterator[Any]:
            yield model("orders", "2026-09-01.4", SQL, 1, **AWAITS)
            watched.look()
            seen.append(watched.versions("silver.orders"))
            yield verdict("orders", "unique_id", passed=True, second=2)
            yield model("totals", "2026-09-01.2", "select 1 as one", 3)
            watched.look()
            seen.append(watched.versions("silver.orders"))

    result = step(Peeks())
    watched.index = index_assets(Parts(assets=(result,)), "test", "UTC")
    watched.run([result])
    assert seen == [{}, {"2026-09-01.4": READY}]


def test_a_failed_model_fails_alone_with_the_message_of_dbt(watched: Watched) -> None:
    failed = {
        "dbt/unique_id": "model.shop.totals",
        "name": "totals",
        "message": "Runtime Error: division by zero",
        "sql": "select 1/0",
        **times(3),
    }
    events = [model("orders", "2026-09-01.4", SQL, 1)]
    dagster_run, good = watched.run(
        [step(events, Failure("dbt failed.", metadata={"floe/failed": [failed]}))]
    )
    assert not good
    watched.look()
    assert watched.runs()["dbt/shop/orders"] == ["SUCCESS"]
    assert watched.runs()["dbt/shop/totals"] == ["FAILED"]
    facets = watched.facets(str(run_id(dagster_run, "dbt_shop/silver.totals")))
    assert facets["errorMessage"]["message"] == "Runtime Error: division by zero"
    assert watched.versions("silver.totals") == {}


def test_a_test_that_fails_later_rejects_a_ready_version(watched: Watched) -> None:
    watched.run([step([model("orders", "2026-09-01.4", SQL, 1)])])
    watched.look()
    assert watched.versions("silver.orders") == {"2026-09-01.4": READY}
    failing = verdict("orders", "unique_id", passed=False, second=2)
    watched.run([step([failing], Failure("dbt failed.", metadata={"floe/failed": []}))])
    watched.look()
    assert watched.versions("silver.orders") == {"2026-09-01.4": REJECTED}
