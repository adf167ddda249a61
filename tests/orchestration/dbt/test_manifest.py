"""A manifest is written if allowed, or rejected with the command that writes it."""

from pathlib import Path

import pytest

from floe.cli.compile import compile as compile_command
from floe.spec.findings import SpecError
from tests.orchestration.dbt.bank import FLOE_YAML
from tests.orchestration.projects import load_parts, make_project

pytestmark = pytest.mark.slow

PRODUCTION = {"platform.yaml": "environment: production\n"}


def test_new_model_is_an_asset_after_the_next_load(bank: Path) -> None:
    before = load_parts(bank).executable
    make_project(bank, FLOE_YAML, {"dbt/models/gold/new.sql": "select 1 as one"})
    (new,) = load_parts(bank).executable - before
    assert new.path == ["gold", "new"]


def test_current_manifest_is_not_rewritten(bank: Path) -> None:
    manifest = bank / "dbt/target/manifest.json"
    before = manifest.stat().st_mtime_ns
    load_parts(bank)
    assert manifest.stat().st_mtime_ns == before


def test_production_rejects_a_missing_manifest_with_the_command_that_writes_it(bank: Path) -> None:
    make_project(bank, FLOE_YAML, PRODUCTION)
    (bank / "dbt/target/manifest.json").unlink()
    message = r"floe.yaml:4: .*dbt/target/manifest.json does not exist. Run: floe compile."
    with pytest.raises(SpecError, match=message):
        load_parts(bank)


def test_production_rejects_a_stale_manifest(bank: Path) -> None:
    make_project(bank, FLOE_YAML, PRODUCTION)
    with pytest.raises(SpecError, match=r"does not match the dbt project. Run: floe compile"):
        load_parts(bank)


def test_floe_compile_writes_the_manifest_that_production_needs(
    bank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_project(bank, FLOE_YAML, PRODUCTION)
    compile_command(bank)
    assert "dbt/target/manifest.json" in capsys.readouterr().out
    assert load_parts(bank).executable


@pytest.mark.parametrize("content", [None, "no json", "[]", '{"nodes": {}}'])
def test_invalid_manifest_from_elsewhere_is_rejected(bank: Path, content: str | None) -> None:
    more = "orchestration: {dbt: {manifest_path: elsewhere/manifest.json}}\n"
    make_project(bank, FLOE_YAML + more)
    if content is not None:
        make_project(bank, FLOE_YAML + more, {"elsewhere/manifest.json": content})
    with pytest.raises(SpecError) as refused:
        load_parts(bank)
    message = str(refused.value)
    assert "orchestration.dbt.manifest_path: elsewhere/manifest.json" in message
    assert "Run: dbt parse." in message


def test_manifest_from_elsewhere_is_used_unchanged(bank: Path) -> None:
    more = "orchestration: {dbt: {manifest_path: dbt/target/manifest.json}}\n"
    make_project(bank, FLOE_YAML + more, {"dbt/models/gold/new.sql": "select 1 as one"})
    assert "new" not in {key.path[-1] for key in load_parts(bank).executable}


def test_project_that_dbt_cannot_parse_is_rejected_with_the_message_of_dbt(bank: Path) -> None:
    make_project(bank, FLOE_YAML, {"dbt/models/gold/new.sql": "select * from {{ ref('nobody') }}"})
    message = r"transforms\[0\].path: dbt cannot parse dbt: .*depends on a node named 'nobody'"
    with pytest.raises(SpecError, match=message):
        load_parts(bank)


def test_project_that_names_a_database_is_rejected_with_what_to_remove(bank: Path) -> None:
    source = "sources: [{name: others, database: raw, tables: [{name: rates}]}]"
    make_project(bank, FLOE_YAML, {"dbt/models/others.yml": source})
    with pytest.raises(SpecError, match=r"remove 'database' .* from sources, models"):
        load_parts(bank)


def test_folder_without_a_dbt_project_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"transforms\[0\].path: .*dbt_project.yml does not exist"):
        load_parts(make_project(tmp_path, FLOE_YAML))


def test_project_dir_overrides_the_path_of_the_transform(bank: Path) -> None:
    (bank / "dbt").rename(bank / "models_of_ours")
    text = "transforms:\n  - {type: dbt}\norchestration: {dbt: {project_dir: models_of_ours}}\n"
    make_project(bank, text)
    assert load_parts(bank).executable


def test_two_models_with_one_dataset_name_are_rejected(bank: Path) -> None:
    sql = "{{ config(alias='limits_used') }} select 1 as one"
    make_project(bank, FLOE_YAML, {"dbt/models/gold/twin.sql": sql})
    with pytest.raises(SpecError, match="limits_used"):
        load_parts(bank)
