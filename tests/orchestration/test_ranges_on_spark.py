"""In a run for several partitions, every date has its own run and version in the catalog."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterEventType, DagsterInstance, ExecuteInProcessResult

from floe.catalog.runs import find_run
from floe.execution.spark.server import Server
from floe.orchestration.metadata import READS, RUN, VERSION
from floe.orchestration.ranges import RANGE_END, RANGE_START
from tests.execution.workshop import Workshop
from tests.orchestration.projects import load_definitions

pytestmark = [pytest.mark.java, pytest.mark.slow]

ASSETS = """
import pandas
from dagster import AssetExecutionContext, AssetIn, asset
from pathlib import Path


@asset(key_prefix="bronze")
def orders(context: AssetExecutionContext):
    day = context.partition_key
    return pandas.DataFrame({"day": [day], "amount": [float(day[-2:])]})


@asset(key_prefix="silver", ins={"orders": AssetIn(key_prefix="bronze")})
def totals(context: AssetExecutionContext, orders: pandas.DataFrame):
    broken = Path(__file__).with_name("broken")
    if broken.exists() and broken.read_text() == context.partition_key:
        raise ValueError("no totals")
    return orders
"""
DAYS = ["2026-08-30", "2026-08-31", "2026-09-01"]


@pytest.fixture
def shop(tmp_path: Path, spark_server: Server, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """Python assets and a process that reads them, with daily partitions."""
    shop = Workshop(tmp_path, spark_server)
    shop.declare(
        {"silver.totals": {}, "gold.best": {}},
        {
            "best": {
                "inputs": {"totals": "silver.totals"},
                "outputs": {"best": "gold.best"},
                "sql": "select max(amount) as amount from totals",
            }
        },
        orchestration={
            "asset_modules": ["bronze"],
            "partitions": {
                "daily": {"type": "time_window", "start": "2026-08-30", "end": "2026-09-03"}
            },
            "assets": {"*": {"partitions": "daily"}},
        },
    )
    shop.write(ASSETS, "bronze.py")
    for name, value in shop.environ.items():
        monkeypatch.setenv(name, value)
    return shop


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as result:
        yield result


def make(shop: Workshop, instance: DagsterInstance) -> ExecuteInProcessResult:
    job = load_definitions(shop.root).resolve_implicit_global_asset_job_def()
    tags = {RANGE_START: DAYS[0], RANGE_END: DAYS[-1]}
    keys = [AssetKey(name.split(".")) for name in ("bronze.orders", "silver.totals", "gold.best")]
    return job.execute_in_process(
        instance=instance, tags=tags, asset_selection=keys, raise_on_error=False
    )


def told(instance: DagsterInstance, run: str, asset: str, name: str) -> list[object]:
    """The metadata of an asset's materializations in a run, in order."""
    result: list[object] = []
    for entry in instance.all_logs(run, of_type=DagsterEventType.ASSET_MATERIALIZATION):
        event = entry.dagster_event
        assert event is not None
        if event.asset_key == AssetKey(asset.split(".")):
            result.append(event.step_materialization_data.materialization.metadata[name].value)
    return result


def test_every_date_has_a_version_that_depends_on_versions_of_the_same_date(
    shop: Workshop, instance: DagsterInstance
) -> None:
    run = make(shop, instance)
    assert run.success
    tags = [f"{day}.1" for day in DAYS]
    for name in ("bronze.orders", "silver.totals", "gold.best"):
        assert told(instance, run.run_id, name, VERSION) == tags
    for name, source in (("silver.totals", "bronze.orders"), ("gold.best", "silver.totals")):
        assert told(instance, run.run_id, name, READS) == [
            [{"dataset": source, "version": tag}] for tag in tags
        ]
    with shop.open() as project:
        assert project.states("gold.best") == dict.fromkeys(tags, "READY")
        for day, tag in zip(DAYS, tags, strict=True):
            assert project.rows("silver.totals", tag) == [(day, float(day[-2:]))]
            assert project.rows("gold.best", tag) == [(float(day[-2:]),)]
        ids = told(instance, run.run_id, "gold.best", RUN)
        with project.workspace.catalog.reading() as session:
            result = [find_run(session, str(item)) for item in ids]
        assert [str(item.business_date) for item in result if item is not None] == DAYS


def test_a_failed_date_keeps_the_versions_of_earlier_dates(
    shop: Workshop, instance: DagsterInstance
) -> None:
    shop.write(DAYS[1], "broken")
    run = make(shop, instance)
    assert not run.success
    assert told(instance, run.run_id, "silver.totals", VERSION) == [f"{DAYS[0]}.1"]
    with shop.open() as project:
        assert project.states("silver.totals") == {f"{DAYS[0]}.1": "READY"}
        assert project.states("bronze.orders") == {f"{day}.1": "READY" for day in DAYS}
