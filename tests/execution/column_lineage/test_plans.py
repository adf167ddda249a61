"""The lineage of columns is read out of Spark's plan, and what the plan leaves open is unknown."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from floe.execution.column_lineage import INPUT_PREFIX, OutputLineage, Source, trace_plan
from floe.execution.spark.explaining import explain
from tests.execution.column_lineage.examples import EXAMPLES, INPUTS, WORDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

NAMES = {alias: [column.name for column in columns] for alias, columns in INPUTS.items()}
FOLLOWED = 62
# Where the plan says more than the SQL, or says it in another way.
OTHERWISE = {
    "exists asks only for rows": "a subquery is a gap",
    "exists without a condition asks for any row": "a subquery is a gap",
    "counting the rows of a subquery uses no column": "a subquery is a gap",
    "in asks for values": "a subquery is a gap",
    "a union goes by place": "Spark casts one side",
    "a pivot aggregates for each value": "it is two aggregations",
    "a pivot of several aggregates": "it is two aggregations",
    "an unpivot puts columns below each other": "values are taken over, nulls filtered",
    "an unpivot may have a name": "values are taken over, nulls filtered",
}


def words(sources: Iterable[Source]) -> set[str]:
    return {
        f"{WORDS[use]}({alias}.{column})" if use in WORDS else f"{alias}.{column}"
        for alias, column, use in sources
    }


@pytest.fixture
def frames(spark: "SparkSession") -> "dict[str, DataFrame]":
    """The inputs of the examples without a row, marked as a run marks them."""
    found = {}
    for alias, columns in INPUTS.items():
        schema = ", ".join(f"{column.name} {column.type}" for column in columns)
        found[alias] = spark.createDataFrame([], schema).alias(f"{INPUT_PREFIX}{alias}")
    return found


def traced(spark: "SparkSession", frame: "DataFrame") -> OutputLineage:
    return trace_plan(explain(spark, frame), NAMES, frame.columns)


def columns(found: OutputLineage) -> dict[str, str]:
    """Each column as the examples write it; of an unknown one, why it is."""
    return {
        name: one.unknown or " ".join(sorted(words(one.sources)))
        for name, one in found.columns.items()
    }


@pytest.mark.java
@pytest.mark.slow
def test_plans_of_the_examples_say_what_their_sql_says_or_that_it_is_unknown(
    spark: "SparkSession", frames: "dict[str, DataFrame]"
) -> None:
    for alias, frame in frames.items():
        frame.createOrReplaceTempView(alias)
    wrong, followed = [], 0
    for example in EXAMPLES:
        found = traced(spark, spark.sql(example.sql, args={"rate": 1}))
        if found.unknown or any(one.unknown for one in found.columns.values()):
            continue
        wanted = {name: set(sources.split()) for name, sources in example.columns.items()}
        made = {name: words(one.sources) for name, one in found.columns.items()}
        if (made, words(found.rows)) == (wanted, set(example.rows.split())):
            followed += 1
        elif example.name not in OTHERWISE:
            wrong.append((example.name, made, words(found.rows)))
    assert wrong == []
    assert followed >= FOLLOWED


@pytest.mark.java
@pytest.mark.slow
def test_what_functions_do_with_frames_is_followed(
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
    found = traced(spark, frame)
    assert columns(found) == {
        "id": "p.id",
        "currency, of the trade": "p.ccy",
        "eur": "f(fx.rate) f(p.amount)",
        "double": "f(p.amount)",
    }
    assert words(found.rows) >= {"join(p.ccy)", "join(fx.ccy)", "filter(p.party)", "filter(p.day)"}
    # A text with a bracket looks like a part of the expression that it stands in.
    text = F.when(F.col("eur").isNull(), F.lit("none (")).otherwise("EUR")
    assert "bracket" in str(traced(spark, frame.withColumn("text", text)).unknown)


@pytest.mark.java
@pytest.mark.slow
def test_what_leaves_spark_or_is_no_input_is_unknown_and_the_rest_is_not(
    spark: "SparkSession", frames: "dict[str, DataFrame]"
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    p, fx = frames["p"], frames["fx"]
    own = spark.createDataFrame([("EUR", 1.0)], "ccy string, weight double")
    found = columns(traced(spark, p.join(own, "ccy").select("id", "weight")))
    assert found == {"id": "p.id", "weight": "it comes from something that is no input"}
    mapped = fx.mapInPandas(lambda batches: batches, "ccy string, rate double")
    found = columns(traced(spark, p.join(mapped, "ccy").select("id", "rate")))
    assert found == {"id": "p.id", "rate": "a Python function makes its rows"}
    text = traced(spark, p.select("id", F.lit("two\nlines").alias("text")))
    assert text.unknown == "its plan holds a text of several lines"
    like = traced(spark, p.select(F.concat("ccy", F.lit("no #12 of")).alias("text")))
    assert "looks like a column" in str(like.columns["text"].unknown)


def plan(*lines: str, listed: str = "a: int") -> str:
    return "\n".join(
        ["== Parsed ==", "", "== Analyzed Logical Plan ==", listed, *lines, "", "== Optimized"]
    ).replace("== Optimized", "== Optimized Logical Plan ==")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "shows no plan"),
        (plan("Mystery [a#1]"), "cannot follow Spark's Mystery"),
        (plan("Project [1 AS a#1]", "+- OneRowRelation", listed="b: int"), "columns that Spark"),
        (plan("Project [1 AS a#1]", "+- OneRowRelation", listed="a: int, b: int"), "columns that"),
        (plan("SubqueryAlias floe_input_fx", "+- LocalRelation [a#1]"), "columns of 'fx' are not"),
        (plan("Project [(x AS a#1]", "+- OneRowRelation"), "a text with brackets"),
    ],
)
def test_a_plan_that_is_not_understood_says_why(text: str, reason: str) -> None:
    found = trace_plan(text, NAMES, ["a"])
    assert reason in str(found.unknown)
    assert found.columns["a"].unknown == found.unknown


def test_a_literal_comes_from_nowhere() -> None:
    text = plan("Project [1 AS a#1]", "+- OneRowRelation")
    assert columns(trace_plan(text, NAMES, ["a"])) == {"a": ""}


def test_a_plan_of_thousands_of_operators_is_followed() -> None:
    lines = ["GlobalLimit 1"]
    lines += [f"{'   ' * n}+- LocalLimit {n}" for n in range(1500)]
    lines.append(f"{'   ' * 1500}+- Project [1 AS a#1]")
    lines.append(f"{'   ' * 1501}+- OneRowRelation")
    assert columns(trace_plan(plan(*lines), NAMES, ["a"])) == {"a": ""}
