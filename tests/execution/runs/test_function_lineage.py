"""The column lineage of functions is recorded in the catalog."""

from typing import Any

import pytest
from sqlalchemy import select

from floe.catalog.tables import ColumnEdge, Dataset
from floe.execution.input_deliveries import receive_for
from tests.execution.workshop import TRADES, TUESDAY, OpenShop, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]

FUNCTIONS = """
from pyspark.sql import functions as F

def total(trades):
    bought = trades.filter("amount > 0")
    return bought.select(F.sum("amount").alias("amount"), F.max("id").alias("id"))

def marked(trades):
    return trades.withColumn("big", F.col("amount") > 100)
"""


def edges(project: OpenShop, dataset: str) -> set[tuple[str, str, str]]:
    """Return the recorded (target, source, kind) column edges of a dataset."""
    with project.workspace.catalog.reading() as session:
        dataset_id = session.scalars(
            select(Dataset.dataset_id).where(Dataset.name == dataset)
        ).one()
        lineage = session.scalars(
            select(ColumnEdge).where(ColumnEdge.target_dataset_id == dataset_id)
        )
        return {(edge.target_column, edge.source_column, edge.kind) for edge in lineage}


def run(shop: Workshop, process: dict[str, Any], **more: Any) -> set[tuple[str, str, str]]:
    shop.write(FUNCTIONS, "lineage_functions.py")
    whole = {"inputs": {"trades": "raw.trades"}, "outputs": {"out": "risk.out"}, **process}
    shop.declare({"raw.trades": TRADES, "risk.out": {}}, {"make": whole}, **more)
    shop.deliver(TUESDAY, (1, 10.0), (2, 5.5))
    with shop.open() as project:
        specs = project.workspace.site.spec.processes.values()
        receive_for(project.workspace, project.sparks, specs, TUESDAY)
        project.run("make")
        return edges(project, "risk.out")


def test_the_lineage_of_a_function_comes_from_sparks_plan(shop: Workshop) -> None:
    lineage = run(shop, {"function": "lineage_functions.total"})
    assert ("amount", "amount", "AGGREGATE") in lineage
    assert ("id", "id", "AGGREGATE") in lineage
    assert ("*", "amount", "FILTER") in lineage


def test_lineage_follows_mixed_sql_and_function_steps(shop: Workshop) -> None:
    steps = [
        {"name": "marked", "function": "lineage_functions.marked"},
        {"name": "out", "sql": "select id as trade, big from marked where big"},
    ]
    lineage = run(shop, {"steps": steps})
    assert ("trade", "id", "DIRECT") in lineage
    assert ("big", "amount", "DIRECT") in lineage


def test_declared_lineage_overrides_the_plan(shop: Workshop) -> None:
    declared = {"out": {"amount": ["trades.id"]}}
    lineage = run(shop, {"function": "lineage_functions.total", "column_lineage": declared})
    assert ("amount", "id", "DIRECT") in lineage
    assert ("amount", "amount", "AGGREGATE") not in lineage
    assert ("id", "id", "AGGREGATE") in lineage


def test_column_lineage_can_be_turned_off(shop: Workshop) -> None:
    process = {"sql": "select sum(amount) as amount from trades"}
    assert run(shop, process, observability={"column_lineage": False}) == set()
