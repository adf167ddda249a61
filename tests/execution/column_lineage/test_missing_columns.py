from types import SimpleNamespace

import pytest

from benchmarks.tpch import COLUMNS, QUERIES
from floe.execution.column_lineage import SqlStep, check_columns, find_repeated
from tests.execution.column_lineage.examples import EXAMPLES, INPUTS

OPEN = {**INPUTS, "open": ()}


def missing(*sql: str) -> list[tuple[str, int, tuple[str, ...]]]:
    """Return name, line and tables of the missing columns of steps s0, s1, …"""
    steps = [SqlStep(f"s{index}", text) for index, text in enumerate(sql)]
    return [
        (column.name, column.line, column.tables)
        for step in check_columns(steps, OPEN).values()
        for column in step.missing
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select amuont from p", [("amuont", 1, ("p",))]),
        ("select id,\n  x.amuont\nfrom p as x", [("amuont", 2, ("p",))]),
        ("select rate from p join fx on p.ccy =\n fx.cyc", [("cyc", 2, ("fx",))]),
        ("select nope from p join fx using (ccy)", [("nope", 1, ("p", "fx"))]),
        ("select id from p where amuont > 1", [("amuont", 1, ("p",))]),
        ("with t as (select id as k from p)\nselect id from t", [("id", 2, ("t",))]),
        ("select 1 as a from p group by nope", [("nope", 1, ("p",))]),
        (
            "select id from p where exists (select 1 from fx where fx.ccy = p.cyc)",
            [("cyc", 1, ("p",))],
        ),
    ],
)
def test_a_column_that_no_table_has_is_found_with_its_line(
    sql: str, expected: list[tuple[str, int, tuple[str, ...]]]
) -> None:
    assert missing(sql) == expected


def test_later_steps_see_the_columns_of_a_step() -> None:
    assert missing("select id as k, amount from p", "select k, id from s0") == [("id", 1, ("s0",))]


@pytest.mark.parametrize(
    "sql",
    [
        "select nope from open",
        "select nope from p join open on p.id = open.id",
        "select nope from undeclared",
        # `p` may be a struct of the other table.
        "select p.id from p join open on p.id = open.id and p.nope = 1",
        "select ID, p.Amount from P",
        "select p.detail.anything, detail.whatever from p",
        "select amount as a, a + 1 as b from p having b > 1 order by a",
        "select party as k, count(*) as n from p group by k having n > 1 order by n, k",
        "select current_user, user, localtimestamp, current_catalog, _metadata.file_path from p",
        "select timestampadd(HOUR, 1, day), dateadd(DAY, 1, day) from p",
        "select timestampdiff(MINUTE, day, day), extract(year from day) from p",
        "select transform(tags, x -> transform(tags, y -> x || y)) as t from p",
        "select aggregate(tags, 0, (acc, x) -> acc + x, acc -> acc * 2) as n from p",
        "select t.anything from p lateral view explode(tags) t as tag",
        "select nope, explode(tags) from p",
        "select nope from p pivot (sum(amount) for ccy in ('EUR', 'USD'))",
        "select {column} from p",
        "select {{ column }} from p",
        "select ${column}, nope from p",
        "select :parameter as x from p",
        "select session.nope from p",
        "select make_interval(days => 3) as i, struct(id as anything) as s from p",
        "select id from p join c join fx on c.ccy = fx.ccy on p.party = c.party and c.nope = 1",
        "select `a|b` from p",
        "select p.ccy, fx.ccy as other, ccy as key from p full join fx using (ccy)",
        "select id, sum(amount) over w as s from p window w as (partition by party order by day)",
        "select id from p union all select party from c order by p.id",
        "select k from (select id, count(*) from p group by id) as t",
        "select id from p order by all",
        "select x from values (1) as t(x)",
        "from p |> where nope > 1 |> select id",
        "this is not sql",
    ],
)
def test_a_column_that_may_exist_is_not_reported(sql: str) -> None:
    assert missing(sql) == []


def test_a_step_on_uncertain_columns_is_not_reported() -> None:
    pivoted = "select * from p pivot (sum(amount) for ccy in ('EUR' as eur))"
    assert missing(pivoted, "select nope from s0") == []


def test_valid_examples_have_no_missing_columns() -> None:
    assert {
        example.name: missing(example.sql) for example in EXAMPLES if missing(example.sql)
    } == {}


@pytest.mark.parametrize(("name", "sql"), [(query[0], query[-1]) for query in QUERIES])
def test_valid_benchmark_queries_have_no_missing_columns(name: str, sql: str) -> None:
    def schemas(suffix: str = "") -> dict[str, list[SimpleNamespace]]:
        return {
            table: [SimpleNamespace(name=f"{column}{suffix}") for column in columns]
            for table, columns in COLUMNS.items()
        }

    assert check_columns([SqlStep(name, sql)], schemas())[name].missing == []
    assert check_columns([SqlStep(name, sql)], schemas("_new"))[name].missing != []


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("select id,\n  amount,\n  party as id\nfrom p", 3),
        ("select p.id,\n  *\nfrom p", 2),
        ("select\n p.*,\n c.*\nfrom p join c on p.party = c.party", 3),
    ],
)
def test_a_repeated_column_is_found_with_its_line(sql: str, line: int) -> None:
    assert find_repeated([SqlStep("out", sql)], INPUTS)["out"].line == line
