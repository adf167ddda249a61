"""A declared schema is a contract: what breaks it is refused, what only widens it is cast."""

import pytest

from floe.execution.versions.contracts import fit_columns, is_lossless
from floe.spec.datasets import Column

DECLARED = [Column(name="id", type="bigint"), Column(name="amount", type="decimal(18,2)")]


def test_columns_that_are_declared_fit_as_they_are() -> None:
    fit = fit_columns([("id", "bigint"), ("amount", "decimal(18,2)")], DECLARED)
    assert (fit.casts, fit.added, fit.problems) == ((), (), ())


def test_without_a_declaration_everything_fits() -> None:
    fit = fit_columns([("anything", "string")], [])
    assert fit.columns == (("anything", "string"),)
    assert (fit.added, fit.problems) == ((), ())


def test_a_missing_column_and_another_type_are_named() -> None:
    fit = fit_columns([("id", "string")], DECLARED)
    assert fit.problems == (
        "column 'id' is string instead of bigint",
        "column 'amount' (decimal(18,2)) is missing",
    )


def test_a_narrower_type_is_cast_and_a_column_more_is_noted() -> None:
    fit = fit_columns([("amount", "decimal(10,2)"), ("ID", "int"), ("note", "string")], DECLARED)
    assert fit.columns == (("id", "bigint"), ("amount", "decimal(18,2)"), ("note", "string"))
    assert fit.casts == ("id", "amount")
    assert fit.added == ("note",)
    assert fit.problems == ()


@pytest.mark.parametrize(
    ("found", "wanted", "lossless"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("float", "double", True),
        ("double", "decimal(18,2)", False),
        ("decimal(10,2)", "decimal(18,4)", True),
        ("decimal(18,4)", "decimal(18,2)", False),
        ("decimal(18,2)", "decimal(18,4)", False),
        ("date", "timestamp", False),
    ],
)
def test_only_casts_that_lose_nothing_are_made(found: str, wanted: str, lossless: bool) -> None:
    assert is_lossless(found, wanted) is lossless
