"""An operational asset downstream of dbt. It writes no dataset."""

from dagster import AssetExecutionContext, MaterializeResult, asset
from pyspark.sql import SparkSession


@asset(key=["ops", "best_sellers"], deps=[["gold", "revenue_by_product"]], group_name="ops")
def best_sellers(context: AssetExecutionContext) -> MaterializeResult:
    """Log the products with the highest revenue."""
    spark = SparkSession.builder.getOrCreate()
    best = spark.table("gold.revenue_by_product").orderBy("revenue", ascending=False).limit(3)
    products = [f"{row.name} ({row.revenue})" for row in best.collect()]
    context.log.info("best sellers: %s", ", ".join(products))
    return MaterializeResult(metadata={"best": products})
