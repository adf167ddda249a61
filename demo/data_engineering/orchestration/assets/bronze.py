"""Daily deliveries of the shop's systems: generated data, the same on every run."""

from datetime import date

from dagster import AssetExecutionContext, asset
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias in Spark code

CUSTOMERS, PRODUCTS, ORDERS, ITEMS = 50, 20, 200, 600
COUNTRIES = ("AT", "DE", "FR", "IT", "NL")
CATEGORIES = ("books", "garden", "kitchen", "toys")
SEED = 42


@asset(key=["bronze", "raw_customers"])
def raw_customers(context: AssetExecutionContext) -> DataFrame:
    """Customers who signed up on a day."""
    day = _day(context)
    return _rows(day, CUSTOMERS).select(
        _id(day, F.col("id")).alias("customer_id"),
        F.format_string("Customer %d", _id(day, F.col("id"))).alias("name"),
        _one_of(COUNTRIES, day, 1).alias("country"),
        _on(day),
    )


@asset(key=["bronze", "raw_products"])
def raw_products(context: AssetExecutionContext) -> DataFrame:
    """Products added on a day."""
    day = _day(context)
    return _rows(day, PRODUCTS).select(
        _id(day, F.col("id")).alias("product_id"),
        F.format_string("Product %d", _id(day, F.col("id"))).alias("name"),
        _one_of(CATEGORIES, day, 2).alias("category"),
        F.round(_random(day, 3) * 90 + 10, 2).cast("decimal(10,2)").alias("price"),
        _on(day),
    )


@asset(key=["bronze", "raw_orders"])
def raw_orders(context: AssetExecutionContext) -> DataFrame:
    """Orders of a day."""
    day = _day(context)
    return _rows(day, ORDERS).select(
        _id(day, F.col("id")).alias("order_id"),
        _id(day, _random_below(CUSTOMERS, day, 4)).alias("customer_id"),
        F.when(_random(day, 5) < 0.9, "completed").otherwise("cancelled").alias("status"),
        _on(day),
    )


@asset(key=["bronze", "raw_order_items"])
def raw_order_items(context: AssetExecutionContext) -> DataFrame:
    """Items of the orders of a day."""
    day = _day(context)
    return _rows(day, ITEMS).select(
        _id(day, F.col("id")).alias("order_item_id"),
        _id(day, _random_below(ORDERS, day, 6)).alias("order_id"),
        _id(day, _random_below(PRODUCTS, day, 7)).alias("product_id"),
        (_random_below(5, day, 8) + 1).cast("int").alias("quantity"),
        _on(day),
    )


def _day(context: AssetExecutionContext) -> date:
    return date.fromisoformat(context.partition_key)


def _rows(day: date, count: int) -> DataFrame:
    # One slice, because rand() depends on the slice and must not differ between machines.
    return SparkSession.builder.getOrCreate().range(0, count, 1, 1)


def _id(day: date, index: Column) -> Column:
    """Return ids that no two days share."""
    return F.lit(day.toordinal() * 1000) + index


def _random(day: date, which: int) -> Column:
    return F.rand(SEED + 100 * day.toordinal() + which)


def _random_below(count: int, day: date, which: int) -> Column:
    return F.floor(_random(day, which) * count)


def _one_of(words: tuple[str, ...], day: date, which: int) -> Column:
    listed = F.array(*map(F.lit, words))
    return F.element_at(listed, (_random_below(len(words), day, which) + 1).cast("int"))


def _on(day: date) -> Column:
    return F.lit(day).alias("business_date")
