"""Python assets: returned frames become versions, and inputs are read from versions."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, DagsterInstance, Definitions, ExecuteInProcessResult

from floe.catalog.datasets import get_dataset
from floe.catalog.runs import find_run
from floe.catalog.stable_names import details_of
from floe.execution.spark.server import Server
from floe.orchestration.metadata import READS, ROWS, SCHEMA, SIZE, SNAPSHOT, VERSION
from floe.spec.identity import BUSINESS_DATE_TAG, run_id
from tests.execution.workshop import TUESDAY, Workshop
from tests.orchestration.projects import load_definitions

BRONZE = """
import pandas
import pyarrow
from dagster import AssetExecutionContext, AssetIn, DailyPartitionsDefinition, MaterializeResult
from dagster import StaticPartitionsDefinition, asset
from pyspark.sql import DataFrame, SparkSession

DAILY = DailyPartitionsDefinition("2026-08-30", end_date="2026-09-03")


@asset(key_prefix="bronze", description="Who buys.")
def customers():
    spark = SparkSession.builder.appName("mine").getOrCreate()
    return spark.range(3).withColumnRenamed("id", "customer")


@asset(key_prefix="silver", ins={"customers": AssetIn(key_prefix="bronze")})
def loyal(customers):
    spark = SparkSession.builder.getOrCreate()
    return customers.join(spark.range(1, 9).withColumnRenamed("id", "customer"), "customer")


@asset(key_prefix="silver", ins={"customers": AssetIn(key_prefix="bronze")})
def in_pandas(customers: pandas.DataFrame):
    assert isinstance(customers, pandas.DataFrame)
    return customers.assign(name=["ann", "bob", "eve"])


@asset(key_prefix="silver", ins={"customers": AssetIn(key_prefix="bronze")})
def in_arrow(customers: pyarrow.Table) -> pyarrow.Table:
    assert isinstance(customers, pyarrow.Table)
    return customers.slice(1)


@asset(key_prefix="silver", ins={"customers": AssetIn(key_prefix="bronze")})
def by_itself(customers) -> MaterializeResult:
    return MaterializeResult(metadata={"seen": customers.count()})


@asset(key_prefix="silver")
def nothing():
    return None


@asset(key_prefix="silver")
def a_number():
    return 42


@asset(key_prefix="silver", ins={"customers": AssetIn(key_prefix="bronze")})
def a_wrong_parameter(customers: int):
    return None


@asset(key_prefix="bronze", partitions_def=DAILY)
def orders(context: AssetExecutionContext):
    day = context.partition_key
    return pandas.DataFrame({"day": [day, day], "amount": [1.0, float(day[-2:])]})


@asset(key_prefix="silver", partitions_def=DAILY, ins={"orders": AssetIn(key_prefix="bronze")})
def totals(orders):
    return orders.groupBy("day").sum("amount").withColumnRenamed("sum(amount)", "amount")


@asset(key_prefix="silver", ins={"orders": AssetIn(key_prefix="bronze")})
def all_orders(orders):
    return orders


@asset(key_prefix="bronze", partitions_def=StaticPartitionsDefinition(["EU", "US"]))
def regions(context: AssetExecutionContext):
    return pandas.DataFrame({"region": [context.partition_key]})


@asset(key_prefix="risk")
def limits():
    return pandas.DataFrame({"limit_id": [1, 2], "amount": [5, -1]})
"""


SEVERAL = """
import pandas
from dagster import AssetExecutionContext, BackfillPolicy, DailyPartitionsDefinition, asset

DAILY = DailyPartitionsDefinition("2026-08-30", end_date="2026-09-03")


@asset(
    key_prefix="bronze",
    partitions_def=DAILY,
    backfill_policy=BackfillPolicy.single_run(),
    metadata={"partition_expr": "day"},
)
def several(context: AssetExecutionContext):
    return pandas.DataFrame({"day": [*context.partition_keys, "2026-08-30"]})


@asset(key_prefix="bronze", partitions_def=DAILY, backfill_policy=BackfillPolicy.single_run())
def untold(context: AssetExecutionContext):
    return pandas.DataFrame({"amount": [1.0]})
"""

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture
def shop(tmp_path: Path, spark_server: Server, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A project with Python assets on the shared Spark server."""
    shop = Workshop(tmp_path, spark_server)
    shop.declare({}, {}, orchestration={"asset_modules": ["bronze"]})
    shop.write(BRONZE, "bronze.py")
    for name, value in shop.environ.items():
        monkeypatch.setenv(name, value)
    return shop


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as instance:
        yield instance


def make(
    shop: Workshop,
    instance: DagsterInstance,
    *keys: str,
    definitions: Definitions | None = None,
    **how: Any,
) -> ExecuteInProcessResult:
    """Materialize assets in this process."""
    definitions = definitions or load_definitions(shop.root)
    job = definitions.resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=instance,
        asset_selection=[AssetKey(key.split(".")) for key in keys],
        raise_on_error=False,
        **how,
    )


def told(instance: DagsterInstance, key: str) -> dict[str, Any]:
    """The metadata of the newest materialization of an asset."""
    event = instance.get_latest_materialization_event(AssetKey(key.split(".")))
    assert event is not None
    assert event.asset_materialization is not None
    return {name: value.value for name, value in event.asset_materialization.metadata.items()}


def why(result: ExecuteInProcessResult) -> dict[str, str]:
    """Why steps failed."""
    failed = [event for event in result.all_events if event.is_step_failure]
    return {
        str(event.step_key): event.step_failure_data.user_failure_data.description or ""
        for event in failed
        if event.step_failure_data.user_failure_data is not None
    }


def test_frames_of_every_kind_become_versions_and_are_read_again(
    shop: Workshop, instance: DagsterInstance
) -> None:
    keys = ("customers", "loyal", "in_pandas", "in_arrow", "by_itself", "nothing")
    names = [f"{'bronze' if key == 'customers' else 'silver'}.{key}" for key in keys]
    result = make(shop, instance, *names, tags={BUSINESS_DATE_TAG: str(TUESDAY)})
    assert result.success, why(result)

    made = told(instance, "bronze.customers")
    assert (made[VERSION], made[ROWS]) == ("2026-09-01.1", 3)
    assert made[SIZE] > 0
    assert [(column.name, column.type) for column in made[SCHEMA].columns] == [
        ("customer", "bigint")
    ]
    read = [{"dataset": "bronze.customers", "version": "2026-09-01.1"}]
    for name in names[1:5]:
        assert told(instance, name)[READS] == read
    assert told(instance, "silver.by_itself")["seen"] == 3
    assert VERSION not in told(instance, "silver.nothing")

    with shop.open() as project:
        assert project.main("silver.loyal") == [(1,), (2,)]
        assert project.main("silver.in_pandas") == [(0, "ann"), (1, "bob"), (2, "eve")]
        assert project.main("silver.in_arrow") == [(1,), (2,)]
        (version,) = project.versions("bronze.customers")
        assert version.state == "READY"
        assert made[SNAPSHOT] == details_of(version)["snapshot"]
        # The observer reports the run under this id.
        own_id = str(run_id(result.run_id, "bronze__customers"))
        assert version.produced_by_run_id == own_id
        with project.workspace.catalog.reading() as session:
            assert find_run(session, own_id) is None
            assert get_dataset(session, version.dataset_id).description == "Who buys."
    assert "SPARK_REMOTE" not in os.environ


def test_an_undeclared_dataset_of_an_asset_survives_changes_of_the_declarations(
    shop: Workshop, instance: DagsterInstance
) -> None:
    assert make(shop, instance, "bronze.customers").success
    shop.declare({"other.dataset": {}}, {}, orchestration={"asset_modules": ["bronze"]})
    with shop.open() as project, project.workspace.catalog.reading() as session:
        dataset_id = project.workspace.dataset_id("bronze.customers", session)
        assert get_dataset(session, dataset_id).status == "ACTIVE"


def test_a_result_that_is_no_frame_is_rejected_in_one_sentence(
    shop: Workshop, instance: DagsterInstance
) -> None:
    result = make(shop, instance, "silver.a_number", "silver.a_wrong_parameter")
    failed = why(result)
    assert failed["silver__a_number"].startswith("The asset 'silver.a_number' returned int. Return")
    assert "annotated with int. Use pyspark.sql.DataFrame" in failed["silver__a_wrong_parameter"]


def test_a_partition_reads_and_writes_its_own_version(
    shop: Workshop, instance: DagsterInstance
) -> None:
    definitions = load_definitions(shop.root)
    for day in ("2026-09-01", "2026-08-31"):
        result = make(
            shop,
            instance,
            "bronze.orders",
            "silver.totals",
            definitions=definitions,
            partition_key=day,
        )
        assert result.success, why(result)
    assert told(instance, "silver.totals")[READS] == [
        {"dataset": "bronze.orders", "version": "2026-08-31.1"}
    ]
    result = make(shop, instance, "silver.all_orders", definitions=definitions)
    assert told(instance, "silver.all_orders")[ROWS] == 4
    with shop.open() as project:
        assert project.states("bronze.orders") == {"2026-09-01.1": "READY", "2026-08-31.1": "READY"}
        assert project.main("silver.totals") == [("2026-09-01", 2.0)], "main does not go back"

    lacking = make(shop, instance, "silver.totals", partition_key="2026-09-02")
    assert why(lacking)["silver__totals"].startswith(
        "'bronze.orders' has no READY version for 2026-09-02."
    )


def test_static_partitions_have_separate_versions(
    shop: Workshop, instance: DagsterInstance
) -> None:
    definitions = load_definitions(shop.root)
    tags = {BUSINESS_DATE_TAG: str(TUESDAY)}
    for region in ("EU", "US", "EU"):
        assert make(
            shop,
            instance,
            "bronze.regions",
            definitions=definitions,
            partition_key=region,
            tags=tags,
        ).success
    with shop.open() as project:
        assert project.states("bronze.regions") == {
            "EU.1": "SUPERSEDED",
            "US.1": "READY",
            "EU.2": "READY",
        }
        assert {version.business_date for version in project.versions("bronze.regions")} == {
            TUESDAY
        }


def test_the_schema_and_checks_of_a_declared_dataset_are_enforced(
    shop: Workshop, instance: DagsterInstance
) -> None:
    limits: dict[str, Any] = {
        "schema": [{"name": "limit_id", "type": "int"}, {"name": "amount", "type": "int"}],
        "checks": [{"kind": "range", "column": "amount", "min": 0}],
    }
    orchestration = {"asset_modules": ["bronze"]}
    shop.declare({"risk.limits": limits}, {}, orchestration=orchestration)
    rejected = make(shop, instance, "risk.limits", tags={BUSINESS_DATE_TAG: str(TUESDAY)})
    assert "Version 2026-09-01.1 of 'risk.limits' was rejected" in why(rejected)["risk__limits"]

    limits["checks"] = []
    shop.declare({"risk.limits": limits}, {}, orchestration=orchestration)
    result = make(shop, instance, "risk.limits", tags={BUSINESS_DATE_TAG: str(TUESDAY)})
    assert result.success, why(result)
    columns = told(instance, "risk.limits")[SCHEMA].columns
    assert [(column.name, column.type) for column in columns] == [
        ("limit_id", "int"),
        ("amount", "int"),
    ]
    with shop.open() as project:
        assert project.states("risk.limits") == {
            "2026-09-01.1": "REJECTED",
            "2026-09-01.2": "READY",
        }
        assert project.main("risk.limits") == [(1, 5), (2, -1)]


READER = """
from dagster import AssetIn, asset


@asset(key_prefix="risk", ins={"prices": AssetIn(key=["raw", "prices"])})
def priced(prices):
    return prices
"""


def test_an_asset_that_reads_an_invalid_delivery_fails_with_the_reason(
    shop: Workshop, instance: DagsterInstance
) -> None:
    prices = {
        "format": "csv",
        "location": "landing/{business_date}/*.csv",
        "schema": [{"name": "price", "type": "decimal(18,4)"}],
    }
    shop.declare({"raw.prices": prices}, {}, orchestration={"asset_modules": ["reader"]})
    shop.write(READER, "reader.py")
    tags = {BUSINESS_DATE_TAG: str(TUESDAY)}
    shop.write("price\n1.5\n", f"landing/{TUESDAY}/prices.csv")
    result = make(shop, instance, "risk.priced", tags=tags)
    assert result.success, why(result)
    shop.write("price\n1.5\nabc\n", f"landing/{TUESDAY}/prices.csv")
    message = why(make(shop, instance, "risk.priced", tags=tags))["risk__priced"]
    assert message == (
        "The delivery of 'raw.prices' was rejected: "
        "prices.csv line 3: 'abc' is not a decimal(18,4) (column price)"
    )


def test_an_invalid_business_date_is_reported(shop: Workshop, instance: DagsterInstance) -> None:
    result = make(shop, instance, "risk.limits", tags={BUSINESS_DATE_TAG: "tomorrow"})
    assert (
        "The run's tag floe/business_date is 'tomorrow', which is not a business date"
        in (why(result)["risk__limits"])
    )


@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`:dagster.BetaWarning")
def test_one_frame_for_several_partitions_is_split_by_its_partition_column(
    shop: Workshop, instance: DagsterInstance
) -> None:
    shop.write(SEVERAL, "several.py")
    shop.declare({}, {}, orchestration={"asset_modules": ["several"]})
    days = {
        "dagster/asset_partition_range_start": "2026-08-31",
        "dagster/asset_partition_range_end": "2026-09-01",
    }
    result = make(shop, instance, "bronze.several", "bronze.untold", tags=days)
    assert why(result)["bronze__untold"].startswith(
        "The asset 'bronze.untold' was run for 2 partitions (2026-08-31 to 2026-09-01) and "
        "returned one frame."
    )
    assert told(instance, "bronze.several")[VERSION] == "2026-09-01.1"
    with shop.open() as project:
        states = project.states("bronze.several")
        assert states == {"2026-08-31.1": "READY", "2026-09-01.1": "READY"}
        assert project.main("bronze.several") == [("2026-08-31",), ("2026-09-01",)]
