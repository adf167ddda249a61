"""Tables like those of TPC-H, generated in Spark from a seed, and eight queries on them."""

from typing import Any

SEED = 20260901
ROWS = {"customer": 150_000, "orders": 1_500_000, "lineitem": 6_000_000, "part": 200_000,
        "supplier": 10_000}  # fmt: skip


def _pick(number: int, below: str) -> str:
    """Return a pseudo-random expression from 0 on, the same in every run."""
    return f"pmod(xxhash64(id, {SEED + number}), {below})"


def _word(number: int, *words: str) -> str:
    listed = ", ".join(f"'{word}'" for word in words)
    return f"element_at(array({listed}), cast({_pick(number, str(len(words)))} + 1 AS int))"


def _day(number: int) -> str:
    return f"date_add(DATE '1992-01-01', cast({_pick(number, '2500')} AS int))"


def _money(number: int, most: int) -> str:
    return f"cast({_pick(number, str(100 * most))} / 100 AS decimal(15,2))"


COLUMNS = {
    "customer": {
        "c_custkey": "id",
        "c_name": "format_string('Customer#%09d', id)",
        "c_nationkey": f"cast({_pick(1, '25')} AS int)",
        "c_mktsegment": _word(2, "BUILDING", "MACHINERY", "HOUSEHOLD", "FURNITURE"),
        "c_acctbal": _money(3, 10_000),
    },
    "orders": {
        "o_orderkey": "id",
        "o_custkey": _pick(4, "{customer}"),
        "o_orderstatus": _word(5, "F", "O", "P"),
        "o_totalprice": _money(6, 500_000),
        "o_orderdate": _day(7),
        "o_orderpriority": _word(8, "1-URGENT", "2-HIGH", "3-MEDIUM", "4-LOW", "5-NONE"),
    },
    "lineitem": {
        "l_orderkey": "id div 4",
        "l_linenumber": "cast(id % 4 AS int)",
        "l_partkey": _pick(9, "{part}"),
        "l_suppkey": _pick(10, "{supplier}"),
        "l_quantity": f"cast({_pick(11, '50')} + 1 AS int)",
        "l_extendedprice": _money(12, 100_000),
        "l_discount": f"cast({_pick(13, '11')} / 100 AS decimal(4,2))",
        "l_returnflag": _word(14, "R", "A", "N"),
        "l_linestatus": _word(15, "O", "F"),
        "l_shipdate": _day(16),
        "l_shipmode": _word(17, "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB", "REG AIR"),
    },
    "part": {
        "p_partkey": "id",
        "p_brand": f"concat('Brand#', {_pick(18, '25')})",
        "p_size": f"cast({_pick(19, '50')} + 1 AS int)",
        "p_retailprice": _money(20, 2_000),
    },
    "supplier": {
        "s_suppkey": "id",
        "s_nationkey": f"cast({_pick(21, '25')} AS int)",
        "s_acctbal": _money(22, 10_000),
    },
}

REVENUE = "sum(l_extendedprice * (1 - l_discount))"
# Name, inputs, key and measure of the output, and the query.
QUERIES: tuple[tuple[str, tuple[str, ...], str, str, str], ...] = (
    (
        "pricing",
        ("lineitem",),
        "l_returnflag",
        "revenue",
        f"SELECT l_returnflag, l_linestatus, sum(l_quantity) AS quantity, {REVENUE} AS revenue, "
        "avg(l_discount) AS discount, count(*) AS items FROM lineitem "
        "WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus",
    ),
    (
        "customers",
        ("customer", "orders", "lineitem"),
        "c_custkey",
        "revenue",
        f"SELECT c_custkey, c_name, c_nationkey, {REVENUE} AS revenue FROM customer "
        "JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey "
        "WHERE l_returnflag = 'R' GROUP BY c_custkey, c_name, c_nationkey",
    ),
    (
        "priorities",
        ("orders", "lineitem"),
        "o_orderpriority",
        "orders_late",
        "SELECT o_orderpriority, year(o_orderdate) AS year, count(*) AS orders_late FROM orders "
        "LEFT SEMI JOIN lineitem ON l_orderkey = o_orderkey AND l_shipdate > o_orderdate "
        "GROUP BY o_orderpriority, year(o_orderdate)",
    ),
    (
        "recent",
        ("lineitem",),
        "l_orderkey",
        "l_quantity",
        "SELECT * FROM lineitem WHERE l_shipdate >= DATE '1997-01-01'",
    ),
    (
        "nations",
        ("lineitem", "supplier"),
        "s_nationkey",
        "revenue",
        f"SELECT s_nationkey, year(l_shipdate) AS year, {REVENUE} AS revenue FROM lineitem "
        "JOIN supplier ON s_suppkey = l_suppkey GROUP BY s_nationkey, year(l_shipdate)",
    ),
    (
        "largest",
        ("orders",),
        "o_orderkey",
        "place",
        "SELECT * FROM (SELECT o_custkey, o_orderkey, o_orderdate, o_totalprice, "
        "row_number() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC, o_orderkey) "
        "AS place FROM orders) WHERE place <= 3",
    ),
    (
        "brands",
        ("lineitem", "part"),
        "p_brand",
        "revenue",
        f"SELECT p_brand, l_shipmode, {REVENUE} AS revenue, avg(l_quantity) AS quantity "
        "FROM lineitem JOIN part ON p_partkey = l_partkey WHERE p_size BETWEEN 5 AND 40 "
        "GROUP BY p_brand, l_shipmode",
    ),
    (
        "running",
        ("customer", "orders"),
        "c_mktsegment",
        "so_far",
        "SELECT c_mktsegment, o_orderdate, total, sum(total) OVER (PARTITION BY c_mktsegment "
        "ORDER BY o_orderdate) AS so_far FROM (SELECT c_mktsegment, o_orderdate, "
        "sum(o_totalprice) AS total FROM orders JOIN customer ON c_custkey = o_custkey "
        "GROUP BY c_mktsegment, o_orderdate)",
    ),
)


def table_sql(table: str, scale: float) -> str:
    """Return the query that generates a table."""
    rows = {name: int(count * scale) for name, count in ROWS.items()}
    columns = ", ".join(f"{what} AS {name}" for name, what in COLUMNS[table].items())
    return f"SELECT {columns.format(**rows)} FROM range({rows[table]})"


def checks_on(key: str, measure: str) -> list[dict[str, Any]]:
    """Return the checks of every output."""
    return [
        {"kind": "row_count", "min": 1},
        {"kind": "not_null", "columns": [key]},
        {"kind": "range", "column": measure, "min": 0},
    ]


def scan_sql(table: str, key: str, measure: str) -> str:
    """Return the query somebody would write by hand for the same checks: one scan."""
    return f"SELECT count(*), count_if({key} IS NULL), count_if({measure} < 0) FROM {table}"
