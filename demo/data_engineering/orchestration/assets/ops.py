"""What the people who run the shop look at. It stands on what dbt makes, and makes no dataset."""

from dagster import AssetExecutionContext, MaterializeResult, asset
from pyspark.sql import SparkSession


@asset(key=["ops", "best_sellers"], deps=[["gold", "revenue_by_product"]], group_name="ops")
def best_sellers(context: AssetExecutionContext) -> MaterializeResult:
    """Say which products earned most."""
    spark = SparkSession.builder.getOrCreate()
    best = spark.table("gold.revenue_by_product").orderBy("revenue", ascending=False).limit(3)
    named = [f"{row.name} ({row.revenue})" for row in best.collect()]
    context.log.info("the best: %s", ", ".join(named))
    return MaterializeResult(metadata={"best": named})
