"""Variables in a text: values, defaults, escapes and mistakes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floe.spec.variables import Substitution, VariableSyntaxError, substitute

ENVIRON = {"REGION": "EMEA", "EMPTY": "", "DIR": "landing"}


def resolved(text: str) -> str:
    result = substitute(text, ENVIRON.get)
    assert not result.missing
    return result.text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${REGION}", "EMEA"),
        ("s3://${DIR}/${REGION}/x", "s3://landing/EMEA/x"),
        ("${REGION:APAC}", "EMEA"),
        ("${NONE:APAC}", "APAC"),
        ("${NONE:-APAC}", "APAC"),
        ("${NONE:--1}", "-1"),
        ("${NONE:}", ""),
        ("${EMPTY}", ""),
        ("${EMPTY:APAC}", "APAC"),
        ("${NONE:a:b}", "a:b"),
        ("${NONE:${REGION}}", "EMEA"),
        ("${NONE:${NEITHER:x}}", "x"),
        ("${NONE:in/{business_date}}/*.csv", "in/{business_date}/*.csv"),
        ("$${REGION}", "${REGION}"),
        ("$$${REGION}", "$${REGION}"),
        ("costs $5 {and} $", "costs $5 {and} $"),
    ],
)
def test_variable_is_replaced_by_its_value_or_default(text: str, value: str) -> None:
    assert resolved(text) == value


def test_variable_without_value_or_default_is_reported_and_unchanged() -> None:
    assert substitute("${A}/${REGION}/${B:${C}}", ENVIRON.get) == Substitution(
        "${A}/EMEA/${C}", ("A", "C")
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${}", "'${}' does not name a variable"),
        ("${1A}", "'${1A}' does not name a variable"),
        ("${A B}", "'${A B}' does not name a variable"),
        ("x ${REGION", "'${REGION' has no closing brace"),
        ("${A:{x}", "'${A:{x}' has no closing brace"),
    ],
)
def test_invalid_variable_is_an_error(text: str, message: str) -> None:
    with pytest.raises(VariableSyntaxError, match=message.replace("$", r"\$").replace("{", r"\{")):
        substitute(text, ENVIRON.get)


def test_nesting_is_limited() -> None:
    with pytest.raises(VariableSyntaxError, match="nested deeper"):
        substitute("${A:" * 50 + "x" + "}" * 50, ENVIRON.get)


@given(st.text(alphabet="${}:-AB_1 x", max_size=60))
def test_any_text_is_resolved_or_rejected(text: str) -> None:
    try:
        substitute(text, ENVIRON.get)
    except VariableSyntaxError:
        return


@given(st.text(max_size=60))
def test_escaped_text_comes_back_unchanged(text: str) -> None:
    text = text.replace("$", "")
    assert resolved(f"$${{{text}") == f"${{{text}"


@given(st.text(max_size=30), st.text(alphabet="abc/ .", max_size=30))
def test_variables_in_values_are_not_resolved(value: str, around: str) -> None:
    environ = {"V": f"${{V}}{value}"}
    assert substitute(f"{around}${{V}}", environ.get).text == f"{around}${{V}}{value}"
