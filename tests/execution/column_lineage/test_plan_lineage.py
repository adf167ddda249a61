"""Column lineage from Spark's plan; what the plan leaves open is unknown."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from floe.execution.column_lineage import INPUT_PREFIX, OutputLineage, Source, trace_plan
from floe.execution.spark.queries import explain
from tests.execution.column_lineage.examples import EXAMPLES, INPUTS, WORDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

NAMES = {alias: [column.name for column in columns] for alias, columns in INPUTS.items()}
FOLLOWED = 62
# Examples whose plan shows more than the SQL, or differs from it.
DIFFERENT = {
    "exists uses only rows": "a subquery is a gap",
    "exists without a condition uses only rows": "a subquery is a gap",
    "counting the rows of a subquery uses no column": "a subquery is a gap",
    "in uses values": "a subquery is a gap",
    "a union matches columns by position": "Spark casts one side",
    "a pivot aggregates for each value": "it is two aggregations",
    "a pivot of several aggregates": "it is two aggregations",
    "an unpivot combines columns": "values are copied, nulls filtered",
    "an unpivot may have a name": "values are copied, nulls filtered",
}


def words(sources: Iterable[Source]) -> set[str]:
    return {
        f"{WORDS[use]}({alias}.{column})" if use in WORDS else f"{alias}.{column}"
        for alias, column, use in sources
    }


@pytest.fixture
def frames(spark: "SparkSession") -> "dict[str, DataFrame]":
    """The inputs of the examples without rows, with the aliases that a run gives them."""
    inputs = {}
    for alias, columns in INPUTS.items():
        schema = ", ".join(f"{column.name} {column.type}" for column in columns)
        inputs[alias] = spark.createDataFrame([], schema).alias(f"{INPUT_PREFIX}{alias}")
    return inputs


def traced(spark: "SparkSession", frame: "DataFrame") -> OutputLineage:
    return trace_plan(explain(spark, frame), NAMES, frame.columns)


def columns(result: OutputLineage) -> dict[str, str]:
    """Return each column as the examples write it, or why it is unknown."""
    return {
        name: column.unknown or " ".join(sorted(words(column.sources)))
        for name, column in result.columns.items()
    }


@pytest.mark.java
@pytest.mark.slow
def test_plans_of_the_examples_have_the_lineage_of_their_sql_or_are_unknown(
    spark: "SparkSession", frames: "dict[str, DataFrame]"
) -> None:
    for alias, frame in frames.items():
        frame.createOrReplaceTempView(alias)
    wrong, followed = [], 0
    for example in EXAMPLES:
        result = traced(spark, spark.sql(example.sql, args={"rate": 1}))
        if result.unknown or any(column.unknown for column in result.columns.values()):
            continue
        expected = {name: set(sources.split()) for name, sources in example.columns.items()}
        actual = {name: words(column.sources) for name, column in result.columns.items()}
        if (actual, words(result.rows)) == (expected, set(example.rows.split())):
            followed += 1
        elif example.name not in DIFFERENT:
            wrong.append((example.name, actual, words(result.rows)))
    assert wrong == []
    assert followed >= FOLLOWED


@pytest.mark.java
@pytest.mark.slow
def test_lineage_follows_frames_through_python_functions(
    spark: "SparkSession", frames: "dict[str, DataFrame]"
) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    p, fx = frames["p"], frames["fx"]

    @F.udf("double", useArrow=False)
    def twice(amount: Any) -> Any:
        return 2 * amount

    newest = Window.partitionBy("party").orderBy(F.desc("day"))
    frame = (
        p.join(fx, "ccy", "left")
        .withColumn("rank", F.row_number().over(newest))
        .filter("rank = 1")
        .select(
            "id",
            F.col("ccy").alias("currency, of the trade"),
            (F.col("amount") * F.col("rate")).alias("eur"),
            twice("amount").alias("double"),
        )
    )
    result = traced(spark, frame)
    assert columns(result) == {
        "id": "p.id",
        "currency, of the trade": "p.ccy",
        "eur": "f(fx.rate) f(p.amount)",
        "double": "f(p.amount)",
    }
    assert words(result.rows) >= {"join(p.ccy)", "join(fx.ccy)", "filter(p.party)", "filter(p.day)"}
    # A text with a bracket looks like part of its expression.
    text = F.when(F.col("eur").isNull(), F.lit("none (")).otherwise("EUR")
    assert "bracket" in str(traced(spark, frame.withColumn("text", text)).unknown)


@pytest.mark.java
@pytest.mark.slow
def test_only_columns_from_outside_spark_or_the_inputs_are_unknown(
    spark: "SparkSession", frames: "dict[str, DataFrame]"
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    p, fx = frames["p"], frames["fx"]
    own = spark.createDataFrame([("EUR", 1.0)], "ccy string, weight double")
    result = columns(traced(spark, p.join(own, "ccy").select("id", "weight")))
    assert result == {"id": "p.id", "weight": "it comes from a source that is not an input"}
    mapped = fx.mapInPandas(lambda batches: batches, "ccy string, rate double")
    result = columns(traced(spark, p.join(mapped, "ccy").select("id", "rate")))
    assert result == {"id": "p.id", "rate": "a Python function produces its rows"}
    text = traced(spark, p.select("id", F.lit("two\nlines").alias("text")))
    assert text.unknown == "its plan contains a text of several lines"
    like = traced(spark, p.select(F.concat("ccy", F.lit("no #12 of")).alias("text")))
    assert "looks like a column" in str(like.columns["text"].unknown)


def plan(*lines: str, listed: str = "a: int") -> str:
    return "\n".join(
        ["== Parsed ==", "", "== Analyzed Logical Plan ==", listed, *lines, "", "== Optimized"]
    ).replace("== Optimized", "== Optimized Logical Plan ==")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "returned no plan"),
        (plan("Mystery [a#1]"), "does not support Spark's Mystery"),
        (plan("Project [1 AS a#1]", "+- OneRowRelation", listed="b: int"), "columns that Spark"),
        (plan("Project [1 AS a#1]", "+- OneRowRelation", listed="a: int, b: int"), "columns that"),
        (plan("SubqueryAlias floe_input_fx", "+- LocalRelation [a#1]"), "columns of 'fx' differ"),
        (plan("Project [(x AS a#1]", "+- OneRowRelation"), "a text with brackets"),
    ],
)
def test_a_plan_that_cannot_be_read_has_a_reason(text: str, reason: str) -> None:
    result = trace_plan(text, NAMES, ["a"])
    assert reason in str(result.unknown)
    assert result.columns["a"].unknown == result.unknown


def test_a_literal_has_no_sources() -> None:
    text = plan("Project [1 AS a#1]", "+- OneRowRelation")
    assert columns(trace_plan(text, NAMES, ["a"])) == {"a": ""}


def test_a_plan_of_thousands_of_operators_is_read() -> None:
    lines = ["GlobalLimit 1"]
    lines += [f"{'   ' * n}+- LocalLimit {n}" for n in range(1500)]
    lines.append(f"{'   ' * 1500}+- Project [1 AS a#1]")
    lines.append(f"{'   ' * 1501}+- OneRowRelation")
    assert columns(trace_plan(plan(*lines), NAMES, ["a"])) == {"a": ""}
