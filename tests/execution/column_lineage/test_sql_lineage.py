"""Column lineage from SQL."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from floe.catalog.schemas import Column
from floe.execution.column_lineage import ColumnLineage, OutputLineage, Source, SqlStep, trace
from floe.settings import ProjectPaths
from floe.spec import load_project, read_sql
from tests.execution.column_lineage.examples import EXAMPLES, INPUTS, WORDS, Example

DEMO = Path(__file__).parents[3] / "demo" / "credit_risk"


def traced(sql: str, *, inputs: Mapping[str, Sequence[Column]] = INPUTS) -> OutputLineage:
    return trace([SqlStep("out", sql)], inputs, {"out": ()})["out"]


def words(sources: Iterable[Source]) -> set[str]:
    """Return sources as the examples write them."""
    return {
        f"{WORDS[use]}({alias}.{column})" if use in WORDS else f"{alias}.{column}"
        for alias, column, use in sources
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_sql_has_the_lineage_of_the_example(example: Example) -> None:
    result = traced(example.sql)
    assert (result.unknown, result.gaps) == (None, ())
    assert [name for name, column in result.columns.items() if column.unknown] == []
    assert list(result.columns) == list(example.columns)
    assert {name: words(column.sources) for name, column in result.columns.items()} == {
        name: set(sources.split()) for name, sources in example.columns.items()
    }
    assert words(result.rows) == set(example.rows.split())


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("select * from nowhere", "'nowhere' is neither an input nor a step"),
        (
            "select t.* from p join other.t on t.id = p.id",
            "'other.t' is neither an input nor a step",
        ),
        ("select detail.* from p", "the fields of 'detail' are unknown"),
        ("select explode(tags) from p", "the columns of explode have no names. Name them with AS"),
        ("select * from p lateral view inline(tags) t", "the columns of inline have no names"),
        ("select * from p union all select * from fx", "differ in their number of columns"),
        ("select * from p as t(a, b)", "an alias has 2 names for 8 columns"),
        (
            "select * from p, c pivot (max(worth) for ccy in ('EUR'))",
            "a pivot follows a join",
        ),
        ("select * from c pivot (max(worth) for ccy in (any))", "of the pivot are not listed"),
        (
            "select ccy from fx union all by name select ccy from c",
            "a union matches columns by name",
        ),
        ("insert into t select * from p", "step 'out': its SQL must be exactly one query"),
        ("select 1; select 2", "step 'out': its SQL must be exactly one query"),
        ("", "step 'out': its SQL must be exactly one query"),
        ("select from where", "step 'out': its SQL "),
        ("select (((", "step 'out': its SQL cannot be parsed"),
        ("select " + "(" * 5000 + "1" + ")" * 5000, "nested too deeply"),
    ],
)
def test_unknown_columns_have_a_reason(sql: str, reason: str) -> None:
    result = traced(sql)
    assert result.unknown is not None
    assert reason in result.unknown
    assert result.columns == {}


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("t.a", "'nowhere' is neither an input nor a step"),
        ("a + id", "'nowhere' is neither an input nor a step"),
        ("(select max(x) from elsewhere)", "'elsewhere' is neither an input nor a step"),
        ("p.amuont", "'nowhere' is neither an input nor a step"),
    ],
)
def test_only_columns_of_an_unknown_table_are_unknown(expression: str, reason: str) -> None:
    result = traced(f"select id, {expression} as a from p join nowhere t on t.id = p.id")
    assert words(result.columns["id"].sources) == {"p.id"}
    assert result.columns["a"].unknown == reason
    assert result.unknown is None
    assert result.gaps[0] == "'nowhere' is neither an input nor a step"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("select amuont as a from p", "no input has a column 'amuont'"),
        ("select p.amuont as a from p", "no input has a column 'p.amuont'"),
        ("select ccy as a from p join fx on p.ccy = fx.ccy", "several columns are called 'ccy'"),
        ("select rate as a from p left semi join fx on p.ccy = fx.ccy", "no input has a column"),
        ("select id as a, party as A from p", "several columns are called 'A'"),
    ],
)
def test_a_missing_or_ambiguous_name_is_unknown(sql: str, reason: str) -> None:
    (column,) = traced(sql).columns.values()
    assert column.sources == frozenset()
    assert reason in str(column.unknown)


def test_an_unknown_table_behind_a_semi_join_hides_no_column() -> None:
    result = traced("select * from fx left semi join nowhere t on t.ccy = fx.ccy")
    assert list(result.columns) == ["ccy", "rate"]
    assert result.gaps == ("'nowhere' is neither an input nor a step",)


def test_long_chains_of_conditions_and_unions_are_read() -> None:
    condition = " or ".join(f"id = {value}" for value in range(3000))
    assert words(traced(f"select id from p where {condition}").rows) == {"filter(p.id)"}
    union = " union all ".join(["select ccy from fx"] * 500)
    assert words(traced(union).columns["ccy"].sources) == {"fx.ccy"}


# --- steps and outputs


def test_a_step_sees_the_inputs_and_the_steps_before_it() -> None:
    steps = [
        SqlStep("eur", "select id, amount / rate as eur from p join fx using (ccy)"),
        SqlStep("total", "select sum(eur) as total from EUR"),
    ]
    result = trace(steps, INPUTS, {"total": (), "eur": ()})
    assert words(result["total"].columns["total"].sources) == {"agg(p.amount)", "agg(fx.rate)"}
    assert words(result["total"].rows) == {"join(p.ccy)", "join(fx.ccy)"}
    assert words(result["eur"].columns["id"].sources) == {"p.id"}


def test_the_only_output_is_the_last_step() -> None:
    result = trace(
        [SqlStep("a", "select 1 as x"), SqlStep("b", "select ccy from fx")], INPUTS, {"o": ()}
    )
    assert words(result["o"].columns["ccy"].sources) == {"fx.ccy"}


def test_an_output_that_no_step_produces_is_unknown() -> None:
    result = trace([SqlStep("a", "select 1 as x")], INPUTS, {"a": (), "b": ()})
    assert result["b"].unknown == "no step produces it"
    assert trace([], INPUTS, {"a": ()})["a"].unknown == "no step produces it"


def test_only_columns_that_come_from_a_function_are_unknown() -> None:
    steps = [
        SqlStep("scored", None),
        SqlStep("out", "select fx.rate, s.score from fx join scored s on s.ccy = fx.ccy"),
    ]
    out = trace(steps, INPUTS, {"out": ()})["out"]
    assert words(out.columns["rate"].sources) == {"fx.rate"}
    assert out.columns["score"].unknown == "step 'scored' is a function"
    assert out.gaps == ("step 'scored' is a function",)


def test_an_input_without_a_schema_is_unknown() -> None:
    assert traced("select * from p", inputs={"p": ()}).unknown == (
        "the columns of input 'p' are unknown"
    )


def test_unnamed_columns_are_matched_by_position_in_the_written_columns() -> None:
    step = SqlStep("out", "select party, sum(amount) from p group by party")
    written = [Column("PARTY", "bigint"), Column("sum(amount)", "double")]
    result = trace([step], INPUTS, {"out": written})["out"]
    assert {name: words(column.sources) for name, column in result.columns.items()} == {
        "PARTY": {"p.party"},
        "sum(amount)": {"agg(p.amount)"},
    }


def test_a_written_column_missing_in_the_sql_is_unknown() -> None:
    written = [Column("ccy", "string"), Column("loaded_at", "timestamp")]
    result = trace([SqlStep("out", "select ccy from fx")], INPUTS, {"out": written})["out"]
    assert result.columns["loaded_at"].unknown == "the SQL returns no column 'loaded_at'"


def test_written_columns_of_an_unknown_output_are_unknown() -> None:
    result = trace([SqlStep("out", None)], INPUTS, {"out": [Column("score", "double")]})["out"]
    assert result.columns == {"score": ColumnLineage(unknown="step 'out' is a function")}


# --- declared lineage


def test_declared_lineage_overrides_traced_lineage() -> None:
    declared = {"out": {"RATE": ["c.worth"]}}
    result = trace([SqlStep("out", "select ccy, rate from fx")], INPUTS, {"out": ()}, declared)[
        "out"
    ]
    assert words(result.columns["rate"].sources) == {"f(c.worth)"}
    assert words(result.columns["ccy"].sources) == {"fx.ccy"}


def test_declared_lineage_covers_what_a_function_hides() -> None:
    written = [Column("score", "double"), Column("model", "string")]
    declared = {"out": {"score": ["p.amount", "fx.rate"]}}
    result = trace([SqlStep("out", None)], INPUTS, {"out": written}, declared)["out"]
    assert words(result.columns["score"].sources) == {"f(p.amount)", "f(fx.rate)"}
    assert result.columns["model"].unknown == "step 'out' is a function"


@pytest.mark.parametrize("text", ["nowhere.x", "amount"])
def test_declared_lineage_from_no_input_is_unknown(text: str) -> None:
    declared = {"out": {"score": [text]}}
    result = trace([SqlStep("out", None)], INPUTS, {"out": ()}, declared)["out"]
    assert "is not a column of an input" in str(result.columns["score"].unknown)


# --- the demo


def demo(process: str) -> dict[str, OutputLineage]:
    """Return the lineage of a process of the demo, with its declared schemas."""
    project = load_project(ProjectPaths(DEMO)).spec
    spec = project.processes[process]
    (alias,) = spec.outputs
    steps = [SqlStep(step.name, read_sql(DEMO, step.sql or "")) for step in spec.steps]
    if spec.sql is not None:
        steps = [SqlStep(alias, read_sql(DEMO, spec.sql))]
    inputs = {name: project.datasets[entry.dataset].columns for name, entry in spec.inputs.items()}
    outputs = {
        name: project.datasets[entry.dataset].columns for name, entry in spec.outputs.items()
    }
    return trace(steps, inputs, outputs)


@pytest.mark.parametrize(
    "process",
    [
        "credit.positions_in_eur",
        "credit.exposure_daily",
        "credit.expected_loss_daily",
        "credit.limit_usage_daily",
        "reporting.large_exposures_daily",
    ],
)
def test_every_column_of_the_demo_is_known(process: str) -> None:
    for output in demo(process).values():
        assert (output.unknown, output.gaps) == (None, ())
        assert [
            name for name, column in output.columns.items() if column.unknown or not column.sources
        ] == []


def test_exposure_comes_from_positions_rates_and_collateral() -> None:
    exposure = demo("credit.exposure_daily")["exposure"]
    assert words(exposure.columns["exposure"].sources) == {
        "agg(positions_eur.market_value_eur)",
        "agg(positions_eur.notional_eur)",
        "if(positions_eur.product)",
        "agg(collateral.amount)",
        "agg(collateral.haircut)",
        "agg(fx.rate)",
    }
    assert words(exposure.columns["as_of"].sources) == {"positions_eur.as_of"}
    assert words(exposure.rows) == {
        "group(positions_eur.as_of)",
        "group(positions_eur.counterparty_id)",
        "join(positions_eur.counterparty_id)",
        "group(collateral.counterparty_id)",
        "join(collateral.counterparty_id)",
        "join(collateral.currency)",
        "join(fx.currency)",
    }


def test_positions_in_euro_come_from_positions_and_rates() -> None:
    output = demo("credit.positions_in_eur")["positions_eur"]
    assert words(output.columns["notional_eur"].sources) == {"f(positions.notional)", "f(fx.rate)"}
    assert words(output.columns["product"].sources) == {"positions.product"}
    assert words(output.rows) == {"join(positions.currency)", "join(fx.currency)"}
