"""Where the columns of what a function made come from is in the catalog."""

from typing import Any

import pytest
from sqlalchemy import select

from floe.catalog.tables import ColumnEdge, Dataset
from floe.execution.receiving import receive_for
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
    """Which column of which kind each column of a dataset comes from."""
    with project.workspace.catalog.reading() as session:
        number = session.scalars(select(Dataset.dataset_id).where(Dataset.name == dataset)).one()
        found = session.scalars(select(ColumnEdge).where(ColumnEdge.target_dataset_id == number))
        return {(one.target_column, one.source_column, one.kind) for one in found}


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


def test_the_lineage_of_a_function_is_that_of_spark_s_plan(shop: Workshop) -> None:
    found = run(shop, {"function": "lineage_functions.total"})
    assert ("amount", "amount", "AGGREGATE") in found
    assert ("id", "id", "AGGREGATE") in found
    assert ("*", "amount", "FILTER") in found


def test_steps_of_sql_and_of_functions_are_followed_as_one(shop: Workshop) -> None:
    steps = [
        {"name": "marked", "function": "lineage_functions.marked"},
        {"name": "out", "sql": "select id as trade, big from marked where big"},
    ]
    found = run(shop, {"steps": steps})
    assert ("trade", "id", "DIRECT") in found
    assert ("big", "amount", "DIRECT") in found


def test_what_is_declared_stands_above_the_plan(shop: Workshop) -> None:
    declared = {"out": {"amount": ["trades.id"]}}
    found = run(shop, {"function": "lineage_functions.total", "column_lineage": declared})
    assert ("amount", "id", "DIRECT") in found
    assert ("amount", "amount", "AGGREGATE") not in found
    assert ("id", "id", "AGGREGATE") in found


def test_a_project_that_wants_no_lineage_of_columns_gets_none(shop: Workshop) -> None:
    process = {"sql": "select sum(amount) as amount from trades"}
    assert run(shop, process, observability={"column_lineage": False}) == set()
