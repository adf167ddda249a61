"""Values of dbt's statements reach Spark as typed parameters, with the pinned dbt-spark."""

from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.metadata import version
from typing import Any

import pytest

from floe.execution.spark.queries import BindingError, as_text, parameter, run_bound
from floe.orchestration.dbt.seed_values import (
    TRIED_WITH,
    DbtSparkMovedError,
    bound_in,
    install,
    number_type,
)


class FakeSpark:
    """Records the statements it is asked to run."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, Any]] = []
        self.rows: list[tuple[str | None, ...]] = []
        self.catalog = self

    def sql(self, statement: str, args: Any = None) -> str:
        self.statements.append((statement, args))
        return "frame"

    def createDataFrame(self, rows: Any, schema: str) -> "FakeSpark":  # noqa: N802
        self.rows = rows
        return self

    def createTempView(self, name: str) -> None: ...  # noqa: N802

    def dropTempView(self, name: str) -> None: ...  # noqa: N802


@pytest.mark.parametrize(
    "value",
    [None, "it's", "None", "a\\b", True, 7, -(2**63), 1.5, Decimal("0.10"), date(2026, 1, 2)],
)
def test_value_reaches_spark_unchanged(value: Any) -> None:
    bound = parameter(value)
    assert (bound, type(bound)) == (value, type(value))


def test_integer_beyond_bigint_is_a_decimal() -> None:
    assert parameter(2**63) == Decimal(2**63)


def test_decimal_is_not_in_scientific_notation() -> None:
    assert str(parameter(Decimal("1E+5"))) == "100000"


def test_timestamp_keeps_its_microseconds_and_zone() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 123456)  # noqa: DTZ001 - as a seed has it
    assert parameter(moment) == "2026-01-02 03:04:05.123456"
    assert parameter(moment.replace(tzinfo=UTC)) == "2026-01-02 03:04:05.123456+00:00"


def test_value_that_spark_has_no_literal_for_is_rejected() -> None:
    with pytest.raises(BindingError, match="value of type object"):
        parameter(object())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (10**18, "1000000000000000000"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.0000000001"), "0.0000000001"),
        (date(2026, 1, 2), "2026-01-02"),
        ("it's", "it's"),
    ],
)
def test_text_of_a_value_is_what_spark_casts_back_to_it(value: Any, text: str | None) -> None:
    assert as_text(value) == text


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2"], "bigint"),
        ([None, None], "bigint"),
        (["9223372036854775807"], "bigint"),
        (["9223372036854775808"], "decimal(38,0)"),
        (["0.1", "12.50", None], "double"),
        (["12345678901234567.89"], "decimal(38,2)"),
        (["0.1", "0.12345678901234567891"], "decimal(38,20)"),
        (["1.5", "NaN"], "double"),
        (["12345678901234567890123456789012.5"], "decimal(38,1)"),
    ],
)
def test_type_of_a_number_column_holds_all_its_values(
    values: list[str | None], expected: str
) -> None:
    numbers = [None if value is None else Decimal(value) for value in values]
    assert number_type(numbers) == expected


def test_placeholders_become_markers_and_other_percents_stay() -> None:
    spark = FakeSpark()
    run_bound(spark, "/* 100% sure */ insert values (%s, %s, '%%') ;", [1, None])  # type: ignore[arg-type]
    assert spark.statements == [("/* 100% sure */ insert values (?, ?, '%') ", [1, None])]


def test_count_of_placeholders_and_values_must_be_the_same() -> None:
    with pytest.raises(BindingError, match=r"1 placeholders \(%s\), but got 2 values"):
        run_bound(FakeSpark(), "values (%s)", [1, 2])  # type: ignore[arg-type]


def open_connection() -> Any:
    """Open a connection the way dbt does, with the method of floe's profile."""
    from dbt.adapters.contracts.connection import Connection
    from dbt.adapters.spark.connections import SparkConnectionManager, SparkCredentials

    credentials = SparkCredentials.from_dict({"method": "session", "host": "x", "schema": "s"})
    kind: Any = "spark"
    connection = Connection(type=kind, name="test", credentials=credentials)
    return SparkConnectionManager.open(connection).handle


def test_contract_statement_of_a_dbt_connection_runs_in_our_session() -> None:
    spark = FakeSpark()
    with bound_in(lambda: spark):  # type: ignore[arg-type, return-value]
        cursor = open_connection().cursor()
        cursor.execute("insert into t values (cast(%s as string))", ["it's"])
    ((statement, _),) = spark.statements
    assert "insert into t select cast(c0 as string) from" in statement
    assert spark.rows == [("it's",)]


def test_rows_that_are_not_all_casts_are_bound_one_by_one() -> None:
    spark = FakeSpark()
    run_bound(spark, "insert into t values (%s), (cast(%s as int))", ["a", 1])  # type: ignore[arg-type]
    assert spark.statements == [("insert into t values (?), (cast(? as int))", ["a", 1])]


def test_contract_seeds_of_this_dbt_spark_give_values_with_a_placeholder_for_each() -> None:
    import dbt.include.spark as macros

    assert version("dbt-spark") == TRIED_WITH, (
        "dbt-spark was upgraded. Check that seeds still call adapter.add_query(sql, bindings=…) "
        "with %s for each value, then set TRIED_WITH in orchestration/dbt/seed_values.py."
    )
    folder = macros.PACKAGE_PATH
    with open(f"{folder}/macros/materializations/seed.sql", encoding="utf-8") as file:  # noqa: PTH123
        text = file.read()
    assert "adapter.add_query(sql, bindings=bindings" in text
    assert "cast({{ get_binding_char() }} as {{type}})" in text
    assert "'%s'" in text


def test_contract_number_type_of_the_adapter_is_replaced() -> None:
    import agate  # type: ignore[import-untyped]
    from dbt.adapters.spark.impl import SparkAdapter

    install()
    table = agate.Table([[Decimal("12345678901234567.89")]], ["amount"])
    assert SparkAdapter.convert_number_type(table, 0) == "decimal(38,2)"


def test_dbt_spark_without_the_replaced_method_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dbt.adapters.spark import session

    class Other:
        def execute(self, statement: str) -> None: ...

    monkeypatch.setattr(session, "SessionConnectionWrapper", Other)
    with pytest.raises(
        DbtSparkMovedError, match=r"does not have Other.execute\(self, sql, bindings\)"
    ) as at:
        install()
    assert f"Install dbt-spark {TRIED_WITH}" in str(at.value)
