"""docs/architecture.md says what the code does."""

import configparser
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_picture_of_layers_is_the_contract() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:layers"]["layers"].strip()
    picture = re.search(r"## Who may import whom.*?```\n(.*?)\n```", PAGE, re.DOTALL)
    assert picture is not None
    assert picture.group(1) == layers


def test_the_table_of_imports_is_what_the_code_imports() -> None:
    graph = grimp.build_graph("floe", cache_dir=None)
    packages = sorted(module.removeprefix("floe.") for module in graph.find_children("floe"))
    for package in packages:
        graph.squash_module(f"floe.{package}")
    imported = {
        package: ", ".join(
            sorted(
                module.removeprefix("floe.")
                for module in graph.find_modules_directly_imported_by(f"floe.{package}")
                if module not in ("floe", f"floe.{package}")
            )
        )
        or "–"
        for package in packages
    }
    table = PAGE.split("## Who imports whom today")[1].split("## ")[0]
    rows = dict(re.findall(r"^\| (\w+) \| (.*) \|$", table, re.MULTILINE))
    rows.pop("package")
    assert rows == imported


def loaded_by(module: str) -> set[str]:
    """The modules that an import brings with it."""
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["floe.cli", "floe.catalog", "floe.spec"])
def test_everyday_imports_leave_spark_dagster_and_pandas_alone(module: str) -> None:
    assert not {"pyspark", "dagster", "pandas", "ibm_db"} & loaded_by(module)


def test_the_help_loads_neither_the_database_nor_the_models() -> None:
    assert not {"sqlalchemy", "pydantic", "alembic"} & loaded_by("floe.cli")


def test_the_api_loads_neither_the_language_nor_the_migrations_nor_foreign_databases() -> None:
    loaded = loaded_by("floe.api.server")
    assert "floe.spec.identity" in loaded
    models = {"floe.spec.loader", "floe.spec.platform", "floe.spec.project", "yaml", "croniter"}
    assert not (models | {"alembic", "psycopg", "sqlalchemy.dialects.postgresql"}) & loaded


@pytest.mark.parametrize("package", ["floe.api", "floe.catalog", "floe.spec"])
def test_a_package_has_every_name_of_its_shop_window(package: str) -> None:
    module = import_module(package)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize("package", ["floe.catalog", "floe.spec"])
def test_a_name_that_a_package_lacks_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=rf"module '{package}' has no attribute 'datsets'"):
        _ = import_module(package).datsets
