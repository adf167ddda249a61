"""A dataset has the same name in every environment, without dbt's target."""

from pathlib import Path

import pytest
from dagster import AssetKey

from floe.orchestration.dbt.manifest import stable_schema
from floe.spec.findings import SpecError
from tests.orchestration.dbt.bank import ASSETS, FILES, FLOE_YAML
from tests.orchestration.projects import load_parts, make_project, spec_of

OWN_PROFILE = FLOE_YAML + "orchestration: {dbt: {profiles_dir: profiles, target: %s}}\n"
PROFILES = """
bank:
  target: dev
  outputs:
    dev: {type: spark, method: session, host: x, schema: "{{ env_var('NOBODY', 'dbt_alice') }}"}
    prod: {type: spark, method: session, host: x, schema: prod}
"""
BY_ENVIRONMENT = """
{% macro generate_schema_name(custom_schema_name, node) -%}
    {{ generate_schema_name_for_env(custom_schema_name, node) }}
{%- endmacro %}
"""
BY_TARGET_NAME = """
{% macro generate_schema_name(custom_schema_name, node) -%}
    {{ target.name }}_{{ custom_schema_name }}
{%- endmacro %}
"""
WITHOUT_MACRO = {name: text for name, text in FILES.items() if "macros" not in name}


def names(folder: Path) -> set[str]:
    return {".".join(key.path) for key in load_parts(folder).executable}


@pytest.mark.parametrize(
    ("schema", "asked_for", "expected"),
    [
        ("silver", "silver", "silver"),
        ("dev_silver", "silver", "silver"),
        ("night_silver", "silver", "silver"),
        ("dev", None, "default"),
        ("dev", "silver", "silver"),
        ("dev", "dev_silver", "silver"),
        ("devices", None, "devices"),
        ("raw", None, "raw"),
    ],
)
def test_schema_leaves_the_target_out(schema: str, asked_for: str | None, expected: str) -> None:
    assert stable_schema(schema, asked_for, ("dev", "night")) == expected


@pytest.mark.slow
def test_default_schemas_of_dbt_are_accepted(tmp_path: Path) -> None:
    assert names(make_project(tmp_path, FLOE_YAML, WITHOUT_MACRO)) == ASSETS


@pytest.mark.slow
@pytest.mark.parametrize("target", ["dev", "prod"])
@pytest.mark.parametrize("macro", ["", BY_ENVIRONMENT, BY_TARGET_NAME])
def test_name_is_the_same_for_every_target_of_an_own_profile(
    tmp_path: Path, target: str, macro: str
) -> None:
    files = {**WITHOUT_MACRO, "profiles/profiles.yml": PROFILES, "dbt/macros/schema.sql": macro}
    assert names(make_project(tmp_path, OWN_PROFILE % target, files)) == ASSETS


@pytest.mark.slow
def test_model_without_a_schema_is_a_dataset_without_one(bank: Path) -> None:
    make_project(bank, FLOE_YAML, {"dbt/models/homeless.sql": "select 1 as one"})
    assert names(bank) == ASSETS | {"homeless"}


SOURCE_OF_OWN = """
sources:
  - name: raw
    schema: %s
    tables:
      - name: rates
        columns: [{name: currency, data_tests: [not_null]}]
      - name: turned
"""
READER = "select * from {{ source('raw', 'rates') }}"


@pytest.mark.slow
@pytest.mark.parametrize("schema", ["silver", '"{{ target.schema }}_silver"'])
def test_source_that_is_an_own_seed_is_that_seed(tmp_path: Path, schema: str) -> None:
    files = {
        **WITHOUT_MACRO,
        "dbt/models/own.yml": SOURCE_OF_OWN % schema,
        "dbt/models/silver/turned.sql": READER,
    }
    parts = load_parts(make_project(tmp_path, FLOE_YAML, files))
    deps = [dep.asset_key for dep in spec_of(parts, "silver.turned").deps]
    assert deps == [AssetKey(["silver", "rates"])]


@pytest.mark.slow
def test_model_may_read_its_own_table_through_a_source(bank: Path) -> None:
    files = {
        "dbt/models/own.yml": SOURCE_OF_OWN % "silver",
        "dbt/models/silver/turned.sql": "select * from {{ source('raw', 'turned') }}",
    }
    parts = load_parts(make_project(bank, FLOE_YAML, files))
    assert list(spec_of(parts, "silver.turned").deps) == []


@pytest.mark.slow
def test_models_that_read_each_other_through_sources_are_rejected(bank: Path) -> None:
    files = {
        "dbt/models/own.yml": SOURCE_OF_OWN % "silver",
        "dbt/models/silver/turned.sql": "select * from {{ ref('back') }}",
        "dbt/models/silver/back.sql": "select * from {{ source('raw', 'turned') }}",
    }
    make_project(bank, FLOE_YAML, files)
    with pytest.raises(SpecError, match=r"read each other through source\(\): model.bank"):
        load_parts(bank)
