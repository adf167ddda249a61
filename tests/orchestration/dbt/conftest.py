"""The small dbt project, parsed once."""

import shutil
from pathlib import Path

import pytest

from tests.orchestration.dbt.bank import FILES, FLOE_YAML
from tests.orchestration.projects import load_parts, make_project


@pytest.fixture(scope="session")
def parsed_bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project after its first load."""
    folder = make_project(tmp_path_factory.mktemp("bank"), FLOE_YAML, FILES)
    load_parts(folder)
    return folder


@pytest.fixture
def bank(parsed_bank: Path, tmp_path: Path) -> Path:
    """A copy of the project, for tests that change it."""
    return Path(shutil.copytree(parsed_bank, tmp_path / "bank"))
