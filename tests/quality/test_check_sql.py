"""Names and values are never interpreted as SQL."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp, parse, tokenize

from floe.quality import CheckSqlError
from floe.quality.check_sql import base_type, quote_column, quote_name, quote_text, quote_value


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        (5, "bigint", "5"),
        (-5, "int", "-5"),
        ("5", "int", "5"),
        (0.0001, "decimal(18,8)", "0.0001"),
        (1e-7, "double", "0.0000001"),
        (1e300, "double", "1e+300D"),
        (0.1, "float", "CAST(0.1 AS FLOAT)"),
        (Decimal("1.50"), "", "1.50"),
        ("2026-09-01", "date", "DATE '2026-09-01'"),
        (date(2026, 9, 1), "", "DATE '2026-09-01'"),
        ("2026-09-01T18:30", "timestamp", "TIMESTAMP '2026-09-01 18:30:00'"),
        ("2026-09-01", "timestamp_ntz", "TIMESTAMP_NTZ '2026-09-01 00:00:00'"),
        (datetime(2026, 9, 1, tzinfo=UTC), "", "TIMESTAMP '2026-09-01 00:00:00+00:00'"),
        (True, "boolean", "TRUE"),
        (True, "string", "'true'"),
        (True, "", "TRUE"),
        (7, "string", "'7'"),
        (7, "", "7"),
        ("swap", "varchar(10)", "'swap'"),
        ("it's", "string", r"'it\'s'"),
        ("${env:HOME}", "string", r"'\u0024{env:HOME}'"),
        ("a\\", "", r"'a\\'"),
    ],
)
def test_a_value_is_written_as_its_column_type_requires(
    value: Any, kind: str, written: str
) -> None:
    assert quote_value(value, kind) == written


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("soon", "date"),
        ("soon", "timestamp"),
        ("many", "int"),
        ("nan", "double"),
        ("1; drop table t", "decimal(18,2)"),
        ("perhaps", "boolean"),
        (["a"], ""),
        (5, "date"),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_rejected(value: Any, kind: str) -> None:
    with pytest.raises(CheckSqlError, match=r"Use (a|true)|cannot be written as a SQL value"):
        quote_value(value, kind)


@given(st.text())
def test_any_text_becomes_one_literal(text: str) -> None:
    tokens = tokenize(f"SELECT {quote_text(text)} AS x", "spark")
    assert len(tokens) == 4


@given(st.text(min_size=1))
def test_any_column_name_becomes_one_identifier(name: str) -> None:
    (query,) = parse(f"SELECT {quote_column(name)} FROM t", dialect="spark")
    assert isinstance(query, exp.Select)
    assert [column.name for column in query.find_all(exp.Column)] == [name]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("positions", "`positions`"),
        ("credit.positions", "`credit`.`positions`"),
        ("lake.credit.`tag_2026-09-01.1`", "`lake`.`credit`.`tag_2026-09-01.1`"),
        ("`a``b`", "`a``b`"),
        ("t where 1=1", "`t where 1=1`"),
    ],
)
def test_each_part_of_a_table_name_is_quoted(name: str, written: str) -> None:
    assert quote_name(name) == written


@pytest.mark.parametrize("name", ["", "a..b", "a.", ".a", "`a", "`a`b", "a`b`"])
def test_an_invalid_table_name_is_rejected(name: str) -> None:
    with pytest.raises(CheckSqlError, match="not a valid table name"):
        quote_name(name)


def test_the_base_type_has_no_parameters() -> None:
    kinds = ["DECIMAL(18, 2)", "array<string>", "timestamp"]
    assert [base_type(kind) for kind in kinds] == ["decimal", "array", "timestamp"]
