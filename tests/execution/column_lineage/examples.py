"""Examples of SQL with their lineage: a name, the SQL, its columns and its rows.

A source is written with its use: `p.a` is copied, `f(p.a)` is part of an expression, `agg(p.a)` is
aggregated; `if`, `window`, `join`, `group`, `filter` and `sort` are indirect uses; `rows(p.*)`:
only the rows of a table matter.
"""

from collections.abc import Mapping
from typing import NamedTuple

from floe.catalog.schemas import Column
from floe.execution.column_lineage import Use

INPUTS = {
    "p": (
        *(Column("id", "bigint"), Column("party", "bigint"), Column("product", "string")),
        *(Column("ccy", "string"), Column("amount", "double"), Column("tags", "array<string>")),
        *(Column("detail", "struct<desk: string, trader: string>"), Column("day", "date")),
    ),
    "fx": (Column("ccy", "string"), Column("rate", "double")),
    "c": (Column("party", "bigint"), Column("worth", "double"), Column("ccy", "string")),
}
ALL_P = {column.name: f"p.{column.name}" for column in INPUTS["p"]}
WORDS = {
    Use.TRANSFORMATION: "f",
    Use.AGGREGATION: "agg",
    Use.CONDITIONAL: "if",
    Use.WINDOW: "window",
    Use.JOIN: "join",
    Use.GROUP_BY: "group",
    Use.FILTER: "filter",
    Use.SORT: "sort",
    Use.ROWS: "rows",
}


class Example(NamedTuple):
    """A query and its lineage."""

    name: str
    sql: str
    columns: Mapping[str, str]
    rows: str = ""


EXAMPLES = [
    # --- columns
    Example("a column is copied", "select amount from p", {"amount": "p.amount"}),
    Example("an alias changes nothing", "select amount as a from p", {"a": "p.amount"}),
    Example(
        "names are case-insensitive",
        "select P.AMOUNT, `Id` from p as P",
        {"AMOUNT": "p.amount", "Id": "p.id"},
    ),
    Example(
        "an expression uses its columns",
        "select amount * 2 + length(product) as a from p",
        {"a": "f(p.amount) f(p.product)"},
    ),
    Example("a cast computes", "select cast(id as string) as s from p", {"s": "f(p.id)"}),
    Example(
        "literals and parameters have no sources",
        "select 1 as one, 'x' as x, null as n, :rate as r, current_date() as d from p",
        {"one": "", "x": "", "n": "", "r": "", "d": ""},
        "rows(p.*)",
    ),
    Example(
        "a field of a struct is computed",
        "select p.detail.desk, detail.trader as t from p",
        {"desk": "f(p.detail)", "t": "f(p.detail)"},
    ),
    Example("an element is computed", "select tags[0] as t from p", {"t": "f(p.tags)"}),
    Example(
        "variables of a lambda are not columns",
        "select transform(tags, amount -> amount || product) as t from p",
        {"t": "f(p.tags) f(p.product)"},
    ),
    Example(
        "conditions of a case are indirect, its results direct",
        "select case when ccy = 'EUR' then amount else id end as a from p",
        {"a": "if(p.ccy) f(p.amount) f(p.id)"},
    ),
    Example(
        "the operand of a simple case is a condition",
        "select case product when 'swap' then amount end as a from p",
        {"a": "if(p.product) f(p.amount)"},
    ),
    Example(
        "an if works like a case",
        "select if(amount > 0, id, party) as a from p",
        {"a": "if(p.amount) f(p.id) f(p.party)"},
    ),
    Example(
        "a lateral alias has the lineage of its expression",
        "select amount * 2 as twice, twice + 1 as more from p",
        {"twice": "f(p.amount)", "more": "f(p.amount)"},
    ),
    Example(
        "a column takes precedence over a lateral alias",
        "select id as amount, amount as b from p",
        {"amount": "p.id", "b": "p.amount"},
    ),
    Example(
        "units of time are not columns",
        "select timestampdiff(DAY, day, current_date()) as age, extract(year from day) as y from p",
        {"age": "f(p.day)", "y": "f(p.day)"},
    ),
    # --- stars
    Example("a star is every column", "select * from p", ALL_P),
    Example(
        "a star may exclude columns",
        "select * except (tags, DETAIL, day) from p",
        {k: v for k, v in ALL_P.items() if k not in ("tags", "detail", "day")},
    ),
    Example(
        "a star of one table",
        "select fx.*, p.id from p join fx on p.ccy = fx.ccy",
        {"ccy": "fx.ccy", "rate": "fx.rate", "id": "p.id"},
        "join(p.ccy) join(fx.ccy)",
    ),
    Example(
        "a star through a query",
        "select * from (select ccy, rate * 2 as r from fx) where r > 1",
        {"ccy": "fx.ccy", "r": "f(fx.rate)"},
        "filter(fx.rate)",
    ),
    Example(
        "a struct of a star computes with all",
        "select struct(*) as s from fx",
        {"s": "f(fx.ccy) f(fx.rate)"},
    ),
    # --- rows
    Example(
        "a filter affects the rows",
        "select id from p where amount > 0 and product like 's%'",
        {"id": "p.id"},
        "filter(p.amount) filter(p.product)",
    ),
    Example(
        "sort keys affect the rows",
        "select id, amount as a from p order by a desc, ccy",
        {"id": "p.id", "a": "p.amount"},
        "sort(p.amount) sort(p.ccy)",
    ),
    Example(
        "a position sorts by a column of the result",
        "select id, amount from p order by 2",
        {"id": "p.id", "amount": "p.amount"},
        "sort(p.amount)",
    ),
    Example(
        "order by all sorts by every column",
        "select ccy, rate from fx order by all",
        {"ccy": "fx.ccy", "rate": "fx.rate"},
        "sort(fx.ccy) sort(fx.rate)",
    ),
    Example("distinct leaves no trace", "select distinct ccy from fx", {"ccy": "fx.ccy"}),
    # --- aggregates
    Example(
        "an aggregate with its groups",
        "select party, sum(amount) as total from p group by party",
        {"party": "p.party", "total": "agg(p.amount)"},
        "group(p.party)",
    ),
    Example(
        "counting rows uses no column",
        "select count(*) as n, count(1) as m from p",
        {"n": "", "m": ""},
        "rows(p.*)",
    ),
    Example(
        "counting the rows of a subquery uses no column",
        "select id, (select count(*) from fx) as n from p",
        {"id": "p.id", "n": "rows(fx.*)"},
    ),
    Example(
        "counting rows by a column uses that column",
        "select ccy, count(*) as n from p group by ccy",
        {"ccy": "p.ccy", "n": ""},
        "group(p.ccy)",
    ),
    Example(
        "exists without a condition uses only rows",
        "select id from p where exists (select 1 from fx)",
        {"id": "p.id"},
        "filter(fx.*)",
    ),
    Example(
        "expressions inside and around an aggregate",
        "select 1 + max(amount * id) as m from p",
        {"m": "agg(p.amount) agg(p.id)"},
    ),
    Example(
        "aggregates that only Spark has",
        "select try_sum(amount) as a, every(id > 0) as e, collect_set(product) as c from p",
        {"a": "agg(p.amount)", "e": "agg(p.id)", "c": "agg(p.product)"},
    ),
    Example(
        "an aggregate with a filter",
        "select sum(amount) filter (where ccy = 'EUR') as a from p",
        {"a": "agg(p.amount) if(p.ccy)"},
    ),
    Example(
        "a percentile within a group",
        "select percentile_cont(0.5) within group (order by amount) as m from p",
        {"m": "agg(p.amount)"},
    ),
    Example(
        "groups by position, alias and expression",
        "select party, upper(ccy) as u from p group by 1, u, product || 'x'",
        {"party": "p.party", "u": "f(p.ccy)"},
        "group(p.party) group(p.ccy) group(p.product)",
    ),
    Example(
        "group by all groups by columns without aggregates",
        "select party, ccy, sum(amount) as s from p group by all",
        {"party": "p.party", "ccy": "p.ccy", "s": "agg(p.amount)"},
        "group(p.party) group(p.ccy)",
    ),
    Example(
        "rollups and grouping sets are groups",
        "select party, count(*) as n from p group by rollup (party, ccy)",
        {"party": "p.party", "n": ""},
        "group(p.party) group(p.ccy)",
    ),
    Example(
        "having filters by aggregates and aliases",
        "select party, sum(amount) as s from p group by party having s > 0 and max(id) > 1",
        {"party": "p.party", "s": "agg(p.amount)"},
        "group(p.party) filter(p.amount) filter(p.id)",
    ),
    # --- windows
    Example(
        "an aggregate over a window",
        "select sum(amount) over (partition by party order by day) as s from p",
        {"s": "agg(p.amount) window(p.party) window(p.day)"},
    ),
    Example(
        "a rank comes only from its window",
        "select row_number() over (order by amount) as n from p",
        {"n": "window(p.amount)"},
    ),
    Example(
        "lag copies the value of another row",
        "select lag(amount) over (order by day) as a from p",
        {"a": "f(p.amount) window(p.day)"},
    ),
    Example(
        "a window may have a name",
        "select max(amount) over w as m from p window w as (partition by ccy)",
        {"m": "agg(p.amount) window(p.ccy)"},
    ),
    # --- queries within queries
    Example(
        "a subquery passes its lineage on",
        "with big as (select id, amount * 2 as a from p where amount > 9), "
        "bigger as (select a + 1 as b from big where id > 5) select max(b) as m from bigger",
        {"m": "agg(p.amount)"},
        "filter(p.amount) filter(p.id)",
    ),
    Example(
        "a with clause may hide an input of the same name",
        "with fx as (select rate as r from fx) select r from fx",
        {"r": "fx.rate"},
    ),
    Example(
        "a query may name its columns",
        "with q(a, b) as (select ccy, rate from fx) select b from q",
        {"b": "fx.rate"},
    ),
    Example(
        "an alias may name columns",
        "select t.x from (select rate from fx) as t(x)",
        {"x": "fx.rate"},
    ),
    Example(
        "a recursive query is read until nothing changes",
        "with recursive r(a, b) as (select id, party from p where id = 1 union all "
        "select r.b, c.party from r join c on c.party = r.a) select a, b from r",
        {"a": "p.id p.party c.party", "b": "p.party c.party"},
        "filter(p.id) join(c.party) join(p.id) join(p.party)",
    ),
    Example(
        "a scalar subquery adds its value and its conditions",
        "select (select max(rate) from fx where fx.ccy = p.ccy) as r from p",
        {"r": "agg(fx.rate) filter(fx.ccy) filter(p.ccy)"},
    ),
    Example(
        "exists uses only rows",
        "select id from p where exists (select rate from fx where fx.ccy = p.ccy)",
        {"id": "p.id"},
        "filter(fx.ccy) filter(p.ccy)",
    ),
    Example(
        "in uses values",
        "select id from p where ccy not in (select ccy from fx where rate > 1)",
        {"id": "p.id"},
        "filter(p.ccy) filter(fx.ccy) filter(fx.rate)",
    ),
    Example(
        "a subquery in a condition is indirect",
        "select case when ccy in (select ccy from fx) then id end as i from p",
        {"i": "if(p.ccy) if(fx.ccy) f(p.id)"},
    ),
    # --- unions
    Example(
        "a union matches columns by position",
        "select id, ccy from p union all select party, worth from c",
        {"id": "p.id c.party", "ccy": "p.ccy c.worth"},
    ),
    Example(
        "conditions of one part affect the union",
        "(select ccy from p where id > 1) union (select ccy from fx) order by ccy",
        {"ccy": "p.ccy fx.ccy"},
        "filter(p.id) sort(p.ccy) sort(fx.ccy)",
    ),
    Example(
        "the second part of except only filters",
        "select ccy from p except select ccy from fx",
        {"ccy": "p.ccy"},
        "filter(fx.ccy)",
    ),
    Example(
        "the second part of intersect only filters",
        "select ccy from p intersect select ccy from fx where rate > 1",
        {"ccy": "p.ccy"},
        "filter(fx.ccy) filter(fx.rate)",
    ),
    # --- joins
    Example(
        "join keys affect the rows",
        "select p.id, fx.rate from p left join fx on p.ccy = fx.ccy and rate > 0",
        {"id": "p.id", "rate": "fx.rate"},
        "join(p.ccy) join(fx.ccy) join(fx.rate)",
    ),
    Example(
        "using returns its columns once and first",
        "select * from fx join c using (ccy)",
        {"ccy": "fx.ccy", "rate": "fx.rate", "party": "c.party", "worth": "c.worth"},
        "join(fx.ccy) join(c.ccy)",
    ),
    Example(
        "a right join has the key of its right side",
        "select ccy from fx right join c using (ccy)",
        {"ccy": "c.ccy"},
        "join(fx.ccy) join(c.ccy)",
    ),
    Example(
        "a full join has the key of either side",
        "select ccy, fx.ccy as left_one from fx full join c using (ccy)",
        {"ccy": "f(fx.ccy) f(c.ccy)", "left_one": "fx.ccy"},
        "join(fx.ccy) join(c.ccy)",
    ),
    Example(
        "three tables may share a key",
        "select party, p.id from p join (select party from c) using (party) "
        "left join fx using (ccy)",
        {"party": "p.party", "id": "p.id"},
        "join(p.party) join(c.party) join(p.ccy) join(fx.ccy)",
    ),
    Example(
        "a natural join is by all columns of the same name",
        "select * from fx natural join c",
        {"ccy": "fx.ccy", "rate": "fx.rate", "party": "c.party", "worth": "c.worth"},
        "join(fx.ccy) join(c.ccy)",
    ),
    Example(
        "a semi join shows only its left side",
        "select * from fx left semi join c on fx.ccy = c.ccy",
        {"ccy": "fx.ccy", "rate": "fx.rate"},
        "join(fx.ccy) join(c.ccy)",
    ),
    Example(
        "an anti join shows only its left side",
        "select rate from fx anti join c using (ccy)",
        {"rate": "fx.rate"},
        "join(fx.ccy) join(c.ccy)",
    ),
    Example(
        "a cross join has no keys",
        "select id, rate from p cross join fx, c",
        {"id": "p.id", "rate": "fx.rate"},
        "rows(c.*)",
    ),
    Example(
        "tables joined in parentheses keep their names",
        "select fx.rate, c.worth, p.id from p join (fx join c on fx.ccy = c.ccy) on p.ccy = fx.ccy",
        {"rate": "fx.rate", "worth": "c.worth", "id": "p.id"},
        "join(fx.ccy) join(c.ccy) join(p.ccy)",
    ),
    Example(
        "a table may be joined with itself",
        "select a.amount as x, b.id as y from p a join p b on a.id = b.party",
        {"x": "p.amount", "y": "p.id"},
        "join(p.id) join(p.party)",
    ),
    # --- derived tables
    Example(
        "a lateral view uses what it explodes",
        "select id, tag from p lateral view outer explode(tags) t as tag where tag <> 'x'",
        {"id": "p.id", "tag": "f(p.tags)"},
        "filter(p.tags)",
    ),
    Example(
        "a lateral view may use a join before it",
        "select * from (select p.id, fx.rate, tag from fx join p on p.ccy = fx.ccy "
        "lateral view explode(p.tags) as tag)",
        {"id": "p.id", "rate": "fx.rate", "tag": "f(p.tags)"},
        "join(fx.ccy) join(p.ccy)",
    ),
    Example(
        "a generator in the select list",
        "select id, posexplode(tags) as (pos, tag) from p",
        {"id": "p.id", "pos": "f(p.tags)", "tag": "f(p.tags)"},
    ),
    Example(
        "a stack mixes its columns",
        "select stack(2, 'a', amount, 'i', cast(id as double)) as (name, value) from p",
        {"name": "f(p.amount) f(p.id)", "value": "f(p.amount) f(p.id)"},
    ),
    Example(
        "a lateral query sees earlier tables",
        "select id, twice from p, lateral (select p.amount * 2 as twice)",
        {"id": "p.id", "twice": "f(p.amount)"},
    ),
    Example(
        "a function as a table",
        "select id, tag from p, lateral explode(p.tags) as t(tag)",
        {"id": "p.id", "tag": "f(p.tags)"},
    ),
    Example(
        "values have no sources",
        "select v.*, rate from values ('EUR', 1), ('USD', 2) as v(name, n) join fx on ccy = name",
        {"name": "", "n": "", "rate": "fx.rate"},
        "join(fx.ccy)",
    ),
    Example(
        "values have default names",
        "select * from values (1, 2)",
        {"col1": "", "col2": ""},
    ),
    Example("a range has no sources", "select id from range(10)", {"id": ""}),
    Example(
        "a pivot aggregates for each value",
        "select * from (select party, ccy, worth from c) "
        "pivot (sum(worth) for ccy in ('EUR', 'USD' as dollar))",
        {"party": "c.party", "EUR": "agg(c.worth) if(c.ccy)", "dollar": "agg(c.worth) if(c.ccy)"},
        "group(c.party)",
    ),
    Example(
        "a pivot of several aggregates",
        "select * from c pivot (sum(worth) as s, max(worth) as m for ccy in ('EUR'))",
        {
            "party": "c.party",
            "EUR_s": "agg(c.worth) if(c.ccy)",
            "EUR_m": "agg(c.worth) if(c.ccy)",
        },
        "group(c.party)",
    ),
    Example(
        "an unpivot combines columns",
        "select * from (select party, worth, worth * 2 as twice from c) "
        "unpivot (value for name in (worth, twice as `two`))",
        {"party": "c.party", "name": "", "value": "f(c.worth)"},
    ),
    Example(
        "an unpivot may have a name",
        "select q.ccy, q.value from c unpivot (value for name in (worth)) as q",
        {"ccy": "c.ccy", "value": "f(c.worth)"},
    ),
    Example(
        "pipe operators are read in order",
        "from fx |> where rate > 1 |> select ccy, rate as r",
        {"ccy": "fx.ccy", "r": "fx.rate"},
        "filter(fx.rate)",
    ),
]
