"""A seed has the same values in the lake as in its file."""

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, Definitions, ExecuteInProcessResult

from floe.execution.spark.server import Server
from floe.orchestration import FloeDefinitions
from tests.orchestration.dbt.bank import MACRO
from tests.orchestration.projects import make_project

pytestmark = [pytest.mark.java, pytest.mark.slow]

FLOE_YAML = "transforms:\n  - {type: dbt, path: dbt}\n"
PROJECT = """
name: seeds
version: "1.0"
config-version: 2
profile: seeds
seeds:
  seeds:
    +schema: dbt_seeds
    +file_format: iceberg
    typed:
      +column_types:
        amount: decimal(38,10)
        big: bigint
        day: date
        at: timestamp
        flag: boolean
        code: string
    bad_number: {+column_types: {amount: "decimal(10,2)"}}
    too_large: {+column_types: {amount: "decimal(5,2)"}}
    bad_date: {+column_types: {day: date}}
"""
HEADER = "id,name,big,amount,day,at,flag\n"
PLAIN_TEXT = """\
1,O'Brien,9223372036854775807,12345678901234567.89,2026-01-02,2026-01-02T03:04:05.123456,true
2,,1234567890123456789,0.10,,,
3,"back\\slash \\n ""quoted"" %s ? 100% {{ x }} :name",,,2026-01-03,2026-01-03T03:04:05,false
4,"two
lines",-9223372036854775808,-0.05,2026-01-04,,true
5,Zürich 東京 😀 None,5,5.5,0001-01-01,,false
"""
PLAIN = list(csv.reader(io.StringIO(PLAIN_TEXT)))
LARGEST = "1234567890123456789012345678.0123456789"
TYPED = f"""\
id,amount,big,day,at,flag,code
1,{LARGEST},9223372036854775807,2026-01-02,2026-01-02 03:04:05.123456,true,007
2,,,,,,
3,-0.0000000001,-1234567890123456789,1999-12-31,1999-12-31T23:59:59+02:00,false,it's
"""
ROWS = 5000


def many() -> str:
    rows = [f"{n},row {n}'s,{n}.25,{'' if n % 3 else 10**18 + n}\n" for n in range(ROWS)]
    return "".join(["id,name,amount,big\n", *rows])


FILES = {
    "dbt/dbt_project.yml": PROJECT,
    "dbt/macros/generate_schema_name.sql": MACRO,
    # Small batches, so that a seed of five thousand rows is several statements.
    "dbt/macros/batches.sql": "{% macro spark__get_batch_size() %}{{ return(2000) }}{% endmacro %}",
    "dbt/seeds/plain.csv": HEADER + PLAIN_TEXT,
    "dbt/seeds/typed.csv": TYPED,
    "dbt/seeds/many.csv": many(),
    "dbt/seeds/bad_number.csv": "id,amount\n1,2.50\n2,twelve\n",
    "dbt/seeds/too_large.csv": "id,amount\n1,123456.00\n",
    "dbt/seeds/bad_date.csv": "id,day\n1,31.12.2026\n",
    "dbt/seeds/headers_only.csv": "id,name\n",
}

Run = Callable[[str], ExecuteInProcessResult]


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory, spark_server: Server) -> Definitions:
    platform = json.dumps({"compute": {"default": {"url": spark_server.url}}})
    folder = tmp_path_factory.mktemp("seeds")
    make_project(folder, FLOE_YAML)
    for name, text in {**FILES, "platform.yaml": platform}.items():
        path = Path(folder / name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return FloeDefinitions.from_compiled_artifacts(folder)


@pytest.fixture
def run(definitions: Definitions) -> Run:
    def run_seed(name: str) -> ExecuteInProcessResult:
        job = definitions.resolve_implicit_global_asset_job_def()
        subset = job.get_subset(asset_selection={AssetKey(["dbt_seeds", name])})
        return subset.execute_in_process(raise_on_error=False)

    return run_seed


def rows_of(spark: Any, name: str) -> list[tuple[Any, ...]]:
    frame = spark.table(f"dbt_seeds.{name}").orderBy("id")
    return [tuple(row) for row in frame.collect()]


def test_seed_without_declared_types_keeps_its_values(run: Run, spark: Any) -> None:
    assert run("plain").success
    columns = ["name", "big", "amount", "cast(day as string)", "cast(at as string)", "flag"]
    read = spark.table("dbt_seeds.plain").orderBy("id").selectExpr(*columns).collect()
    for cells, row in zip(PLAIN, read, strict=True):
        _, name, big, amount, day, at, flag = cells
        assert row[0] == (name or None)
        assert row[1] == (int(big) if big else None)
        assert row[2] == (Decimal(amount) if amount else None)
        assert row[3] == (day or None)
        assert row[4] == (at.replace("T", " ") or None)
        assert row[5] == ({"true": True, "false": False}.get(flag))


def test_seed_with_declared_types_keeps_its_values(run: Run, spark: Any) -> None:
    assert run("typed").success
    assert [kind for _, kind in spark.table("dbt_seeds.typed").dtypes] == [
        "bigint",
        "decimal(38,10)",
        "bigint",
        "date",
        "timestamp",
        "boolean",
        "string",
    ]
    rows = spark.table("dbt_seeds.typed").orderBy("id").withColumn("at", _epoch()).collect()
    first, empty, third = [tuple(row) for row in rows]
    assert first == (
        1,
        Decimal(LARGEST),
        2**63 - 1,
        date(2026, 1, 2),
        _micros(datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
        True,
        "007",
    )
    assert empty == (2, None, None, None, None, None, None)
    assert third[1:4] == (Decimal("-0.0000000001"), -1234567890123456789, date(1999, 12, 31))
    assert third[4:] == (_micros(datetime(1999, 12, 31, 21, 59, 59, tzinfo=UTC)), False, "it's")


def test_seed_of_several_batches_has_every_row(run: Run, spark: Any) -> None:
    assert run("many").success
    rows = rows_of(spark, "many")
    assert len(rows) == ROWS
    assert rows[4999] == (4999, "row 4999's", 4999.25, None)
    assert rows[4998][3] == 10**18 + 4998


@pytest.mark.parametrize(
    ("seed", "value"), [("bad_number", "twelve"), ("too_large", "123456"), ("bad_date", "31.12.")]
)
def test_value_that_does_not_fit_its_declared_type_fails_the_seed(
    run: Run, seed: str, value: str
) -> None:
    result = run(seed)
    assert not result.success
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    data = failed.step_failure_data.user_failure_data
    assert data is not None
    words = str(data.description)
    assert f"seed {seed}:" in words
    assert value in words
    assert "at org.apache.spark" not in words


def test_seed_with_no_rows_is_an_empty_table(run: Run, spark: Any) -> None:
    assert run("headers_only").success
    assert spark.table("dbt_seeds.headers_only").count() == 0


def _epoch() -> Any:
    from pyspark.sql.connect.functions import unix_micros

    return unix_micros("at")


def _micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
