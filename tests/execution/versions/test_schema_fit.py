"""The declared schema is a contract: mismatches are rejected, narrower types are cast."""

import pytest

from floe.execution.versions.schema_fit import fit_columns, is_lossless
from floe.spec.datasets import Column

DECLARED = [Column(name="id", type="bigint"), Column(name="amount", type="decimal(18,2)")]


def test_declared_columns_fit_unchanged() -> None:
    fit = fit_columns([("id", "bigint"), ("amount", "decimal(18,2)")], DECLARED)
    assert (fit.casts, fit.added, fit.problems) == ((), (), ())


def test_without_a_declaration_everything_fits() -> None:
    fit = fit_columns([("anything", "string")], [])
    assert fit.columns == (("anything", "string"),)
    assert (fit.added, fit.problems) == ((), ())


def test_a_missing_column_and_a_wrong_type_are_named() -> None:
    fit = fit_columns([("id", "string")], DECLARED)
    assert fit.problems == (
        "column 'id' is string instead of bigint",
        "column 'amount' (decimal(18,2)) is missing",
    )


def test_a_narrower_type_is_cast_and_an_extra_column_is_added() -> None:
    fit = fit_columns([("amount", "decimal(10,2)"), ("ID", "int"), ("note", "string")], DECLARED)
    assert fit.columns == (("id", "bigint"), ("amount", "decimal(18,2)"), ("note", "string"))
    assert fit.casts == ("id", "amount")
    assert fit.added == ("note",)
    assert fit.problems == ()


@pytest.mark.parametrize(
    ("actual", "wanted", "lossless"),
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
def test_only_lossless_casts_are_allowed(actual: str, wanted: str, lossless: bool) -> None:
    assert is_lossless(actual, wanted) is lossless
