"""Each model, seed and snapshot is an asset, and each test a check."""

from pathlib import Path

import pytest
from dagster import AssetKey, AssetsDefinition

from floe.orchestration.loading import Parts
from floe.spec.findings import SpecError
from tests.orchestration.dbt.bank import ASSETS
from tests.orchestration.projects import load_definitions, load_parts, make_project, spec_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def parts(parsed_bank: Path) -> Parts:
    return load_parts(parsed_bank)


def names(parts: Parts) -> set[str]:
    return {".".join(key.path) for key in parts.executable}


def upstream(parts: Parts, dotted: str) -> set[str]:
    return {".".join(dep.asset_key.path) for dep in spec_of(parts, dotted).deps}


def dbt_of(parts: Parts) -> AssetsDefinition:
    (result,) = [asset for asset in parts.assets if isinstance(asset, AssetsDefinition)]
    return result


def test_each_model_seed_and_snapshot_is_a_separate_asset(parts: Parts) -> None:
    assert names(parts) == ASSETS


def test_dagster_loads_the_definitions(bank: Path) -> None:
    keys = load_definitions(bank).resolve_asset_graph().materializable_asset_keys
    assert {".".join(key.path) for key in keys} == ASSETS


def test_inputs_of_a_model_are_upstream_of_it(parts: Parts) -> None:
    assert upstream(parts, "history.booked_then") == {"silver.booked"}


def test_source_is_the_asset_that_has_its_table_name(parts: Parts) -> None:
    assert upstream(parts, "silver.booked") == {"bronze.raw_trades"}


def test_inputs_of_an_ephemeral_model_are_upstream_of_its_readers(parts: Parts) -> None:
    assert upstream(parts, "gold.exposure_today") == {"silver.booked", "silver.rates"}


def test_group_is_that_of_the_model_else_its_schema(parts: Parts) -> None:
    assert spec_of(parts, "silver.booked").group_name == "silver"
    assert spec_of(parts, "gold.exposure_today").group_name == "treasury"
    assert spec_of(parts, "gold.limits_used").group_name == "reports"


def test_owners_are_those_of_the_model_else_of_its_group(parts: Parts) -> None:
    assert spec_of(parts, "gold.exposure_today").owners == ["treasury@example.com"]
    assert spec_of(parts, "gold.limits_used").owners == ["risk@example.com"]
    assert spec_of(parts, "silver.booked").owners == []


def test_description_tags_kind_and_columns_are_kept(parts: Parts) -> None:
    spec = spec_of(parts, "silver.booked")
    assert spec.description == "Trades that count."
    assert {"nightly", "of_the_bank"} <= spec.tags.keys()
    assert spec.kinds == {"dbt", "spark"}
    (column,) = spec.metadata["dagster/column_schema"].columns
    assert (column.name, column.type, column.description) == (
        "id",
        "bigint",
        "The number of a trade.",
    )


def test_each_test_is_a_check_of_the_model_it_is_declared_on(parts: Parts) -> None:
    result = {(check.asset_key.to_user_string(), check.name) for check in dbt_of(parts).check_specs}
    assert result == {
        ("silver/booked", "unique_booked_id"),
        ("silver/booked", "not_null_booked_id"),
        ("bronze/raw_trades", "source_not_null_feeds_trades_id"),
        ("gold/exposure_today", "nothing_is_lost"),
    }


def test_only_a_test_of_severity_error_stops_downstream_models(parts: Parts) -> None:
    strict = {check.name: check.blocking for check in dbt_of(parts).check_specs}
    assert strict["unique_booked_id"]
    assert not strict["not_null_booked_id"]


def test_test_of_several_models_also_waits_for_the_others(parts: Parts) -> None:
    (check,) = [spec for spec in dbt_of(parts).check_specs if spec.name == "nothing_is_lost"]
    assert [dep.asset_key for dep in check.additional_deps] == [AssetKey(["gold", "limits_used"])]


def test_at_job_level_the_project_is_one_asset_that_reads_its_sources(bank: Path) -> None:
    text = (bank / "floe.yaml").read_text()
    make_project(bank, text + "orchestration: {dbt: {observability_level: job_level}}\n")
    parts = load_parts(bank)
    assert names(parts) == {"dbt.bank"}
    assert upstream(parts, "dbt.bank") == {"bronze.raw_trades"}


def test_only_selected_models_become_assets(bank: Path) -> None:
    transform = "{type: dbt, path: dbt, select: [silver, rates], exclude: [booked]}"
    make_project(bank, f"transforms:\n  - {transform}\n")
    assert names(load_parts(bank)) == {"silver.rates"}


def test_empty_selection_is_rejected(bank: Path) -> None:
    make_project(bank, "transforms:\n  - {type: dbt, path: dbt, select: [platinum]}\n")
    with pytest.raises(SpecError, match=r"transforms\[0\].select: selects no model"):
        load_parts(bank)


def test_project_without_dbt_has_no_dbt_assets(tmp_path: Path) -> None:
    assert load_parts(make_project(tmp_path)).assets == ()


def test_second_dbt_project_is_rejected(bank: Path) -> None:
    make_project(bank, "transforms:\n  - {type: dbt, path: dbt}\n  - {type: dbt, path: other}\n")
    with pytest.raises(SpecError, match="is a second dbt project"):
        load_parts(bank)
