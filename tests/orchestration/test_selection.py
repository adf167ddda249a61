"""The assets that texts under `selection:` select."""

import pytest
from dagster import AssetKey, AssetSpec

from floe.orchestration.selection import AssetGraph, SelectionError, name_of

SHOP = AssetGraph(
    {
        spec.key: spec
        for spec in (
            AssetSpec(["feeds", "orders"], group_name="feeds"),
            AssetSpec(
                ["bronze", "orders"],
                deps=[["feeds", "orders"]],
                group_name="bronze",
                tags={"pii": "", "sla": "gold"},
            ),
            AssetSpec(["bronze", "customers"], group_name="bronze", tags={"sla": "silver"}),
            AssetSpec(
                ["silver", "orders"],
                deps=[["bronze", "orders"], ["bronze", "customers"]],
                group_name="silver",
                tags={"sla": "gold"},
            ),
            AssetSpec(["gold", "revenue"], deps=[["silver", "orders"]], group_name="gold"),
            AssetSpec(["gold", "churn"], deps=[["bronze", "customers"]], group_name="gold"),
            AssetSpec("audit"),
        )
    }
)
BRONZE = {"bronze.orders", "bronze.customers"}
GOLD = {"gold.revenue", "gold.churn"}
EVERYTHING = {name_of(key) for key in SHOP.specs}


def select(text: str) -> set[str]:
    return {name_of(key) for key in SHOP.select(text)}


def refusal(text: str) -> str:
    with pytest.raises(SelectionError) as caught:
        SHOP.select(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("group:bronze", BRONZE),
        ("group:default", {"audit"}),
        ("tag:pii", {"bronze.orders"}),
        ("tag:sla", BRONZE | {"silver.orders"}),
        ("tag:sla=gold", {"bronze.orders", "silver.orders"}),
        ("tag:sla=silver", {"bronze.customers"}),
        ("asset:bronze.orders", {"bronze.orders"}),
        ("asset:bronze/orders", {"bronze.orders"}),
        ("bronze.orders", {"bronze.orders"}),
        ("audit", {"audit"}),
        ("bronze.*", BRONZE),
        ("bronze/*", BRONZE),
        ("*.orders", {"feeds.orders", "bronze.orders", "silver.orders"}),
        ("gold.c?urn", {"gold.churn"}),
        ("*", EVERYTHING),
    ],
)
def test_one_word_selects_by_group_tag_key_or_pattern(text: str, selected: set[str]) -> None:
    assert select(text) == selected


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("+gold.churn", {"gold.churn", "bronze.customers"}),
        ("+gold.revenue", EVERYTHING - {"gold.churn", "audit"}),
        ("1+gold.revenue", {"gold.revenue", "silver.orders"}),
        ("2+gold.revenue", BRONZE | {"gold.revenue", "silver.orders"}),
        ("bronze.orders+", {"bronze.orders", "silver.orders", "gold.revenue"}),
        ("feeds.orders+2", {"feeds.orders", "bronze.orders", "silver.orders"}),
        ("1+silver.orders+1", BRONZE | {"silver.orders", "gold.revenue"}),
        ("+group:gold", EVERYTHING - {"audit"}),
        ("(silver.orders or gold.churn)+", {"silver.orders"} | GOLD),
        ("1+(gold.revenue or gold.churn)", GOLD | {"silver.orders", "bronze.customers"}),
    ],
)
def test_a_plus_adds_upstream_or_downstream_assets(text: str, selected: set[str]) -> None:
    assert select(text) == selected


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("group:bronze or group:gold", BRONZE | GOLD),
        ("group:bronze and tag:pii", {"bronze.orders"}),
        ("group:bronze and not tag:pii", {"bronze.customers"}),
        ("not group:bronze", EVERYTHING - BRONZE),
        ("not not group:bronze", BRONZE),
        # `and` binds closer than `or`, brackets closer than both.
        ("audit or group:bronze and tag:pii", {"audit", "bronze.orders"}),
        ("(audit or group:bronze) and tag:pii", {"bronze.orders"}),
        ("not (group:bronze or group:gold)", EVERYTHING - BRONZE - GOLD),
        ("(bronze.orders+)and(+gold.revenue)", {"bronze.orders", "silver.orders", "gold.revenue"}),
        ("bronze.* AND NOT tag:pii", {"bronze.customers"}),
    ],
)
def test_union_intersection_and_exclusion_combine(text: str, selected: set[str]) -> None:
    assert select(text) == selected


def test_an_intersection_of_nonempty_parts_may_be_empty() -> None:
    assert SHOP.select("group:bronze and group:gold") == frozenset()


def test_a_selection_of_assets_in_a_cycle_terminates() -> None:
    circle = AssetGraph(
        {
            AssetKey("a"): AssetSpec("a", deps=["b"]),
            AssetKey("b"): AssetSpec("b", deps=["a"]),
        }
    )
    assert circle.select("+a") == {AssetKey("a"), AssetKey("b")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("group:bronce", "there is no group 'bronce' (at character 1). Did you mean 'bronze'?"),
        ("tag:pi", "there is no tag 'pi' (at character 1). Did you mean 'pii'?"),
        ("tag:sla=golden", "no asset has the tag sla=golden (at character 1). Did you mean 'gold'"),
        ("bronze.order", "no asset is named 'bronze.order' (at character 1). Did you mean 'bronze"),
        ("customers", "no asset is named 'customers' (at character 1). Did you mean 'bronze.cus"),
        ("*.nothing", "no asset is named '*.nothing'"),
        ("bronze.* or group:slver", "there is no group 'slver' (at character 13)"),
        ("bronze.* and not tag:pi", "there is no tag 'pi' (at character 18)"),
    ],
)
def test_an_unknown_name_is_rejected_with_the_nearest_known_name(text: str, words: str) -> None:
    assert words in refusal(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("grp:bronze", "unknown prefix 'grp:' (at character 1). Did you mean 'group'?"),
        ("group:", "'group:' has no name (at character 1)"),
        ("audit audit", "expected 'and', 'or' or the end; got 'audit' (at character 7)"),
        ("audit, audit", "expected 'and', 'or' or the end; got ',' (at character 6)"),
        (
            "audit and",
            "expected a selection such as group:bronze or bronze.*; got the end of the text",
        ),
        ("audit or or audit", "bronze.*; got 'or' (at character 10)"),
        ("(audit", "expected ')'; got the end of the text (at character 7)"),
        ("audit)", "expected 'and', 'or' or the end; got ')' (at character 6)"),
        ("", "got the end of the text (at character 1)"),
        ("+", "got the end of the text (at character 2)"),
        ("audit+0", "the number of steps must be at least 1; got 0 (at character 6)"),
        ("bronze.orders+gold.churn", "expected 'and', 'or' or the end; got 'gold.churn'"),
    ],
)
def test_a_syntax_error_is_reported_with_its_position(text: str, words: str) -> None:
    assert words in refusal(text)
