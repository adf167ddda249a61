"""Loading the definitions of a project; importing floe does not import Dagster."""

import subprocess
import sys
from pathlib import Path

import pytest
from dagster import AssetKey, Definitions, asset

import floe
from floe.orchestration.assets import DuplicateAssetError, check_assets
from floe.orchestration.loading import Parts, load
from floe.spec import SpecError
from tests.orchestration.projects import load_definitions, load_parts, make_project


def imported_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


def test_importing_floe_does_not_import_dagster() -> None:
    result = imported_by("import floe, floe.orchestration, floe.cli")
    assert not {"dagster", "dagster_dbt", "dbt", "pyspark"} & result


@pytest.mark.slow
def test_using_floe_definitions_imports_dagster() -> None:
    assert "dagster" in imported_by("import floe\nfloe.FloeDefinitions")


def test_floe_has_no_other_name() -> None:
    with pytest.raises(AttributeError, match="module 'floe' has no attribute 'FloeDefinition'"):
        floe.FloeDefinition  # noqa: B018


def test_an_empty_project_loads(tmp_path: Path) -> None:
    make_project(tmp_path)
    definitions = floe.FloeDefinitions.from_compiled_artifacts(tmp_path)
    assert isinstance(definitions, Definitions)


def test_the_path_may_be_the_compiled_file_or_the_folder(tmp_path: Path) -> None:
    text = "from dagster import asset\n\n@asset\ndef one() -> None: ...\n"
    make_project(tmp_path, "orchestration: {asset_modules: [mine]}", {"mine.py": text})
    for path in (str(tmp_path), tmp_path, tmp_path / ".floe/compiled_artifacts.json"):
        definitions = floe.FloeDefinitions.from_compiled_artifacts(path)
        assert [spec.key.path for spec in definitions.resolve_all_asset_specs()] == [["one"]]


def test_the_project_is_found_without_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from dagster import asset\n\n@asset\ndef one() -> None: ...\n"
    make_project(tmp_path, "orchestration: {asset_modules: [mine]}", {"mine.py": text})
    monkeypatch.setenv("FLOE_PROJECT", str(tmp_path))
    definitions = floe.FloeDefinitions.from_compiled_artifacts()
    assert [spec.key.path for spec in definitions.resolve_all_asset_specs()] == [["one"]]


def test_an_error_in_floe_yaml_stops_the_load(tmp_path: Path) -> None:
    make_project(tmp_path, "orchestration:\n  asset_module: [mine]\n")
    with pytest.raises(SpecError, match=r"floe\.yaml:3: orchestration\.asset_module: "):
        load_definitions(tmp_path)


def test_a_process_and_a_python_asset_cannot_produce_the_same_dataset(tmp_path: Path) -> None:
    floe_yaml = """
        name: test
        datasets: {bronze.orders: {}}
        processes: {load: {outputs: {o: bronze.orders}, sql: select 1 as x}}
        orchestration: {asset_modules: [mine]}
    """
    text = "from dagster import asset\n\n@asset(key_prefix='bronze')\ndef orders(): ...\n"
    make_project(tmp_path, floe_yaml, {"mine.py": text})
    with pytest.raises(
        SpecError, match=r"'bronze\.orders' is also produced by a Python asset of the same key"
    ):
        load_parts(tmp_path)


def test_an_asset_of_two_builders_is_rejected_with_both_names(tmp_path: Path) -> None:
    mine, theirs = asset(key="same")(by_mine), asset(key="same")(by_theirs)
    parts = Parts(assets=(mine, theirs), origins={AssetKey("same"): "mine.py"})
    with pytest.raises(
        DuplicateAssetError, match=r"'same' is defined twice: by mine\.py and by 'same'"
    ):
        check_assets(load(make_project(tmp_path)), parts)


def by_mine() -> None: ...


def by_theirs() -> None: ...
