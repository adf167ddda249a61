"""A project has changed when what people write in it has."""

from pathlib import Path

import pytest

from floe.orchestration.launcher.sources import mark_files, mark_sources


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (
        "floe.yaml",
        "assets/bronze.py",
        "sql/a.sql",
        "dbt/target/run/a.sql",
        "data/a.csv",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first")
    return tmp_path


@pytest.mark.parametrize("name", ["floe.yaml", "assets/bronze.py", "sql/a.sql", "assets/new.py"])
def test_what_people_write_counts(root: Path, name: str) -> None:
    before = mark_sources(root)
    (root / name).write_text("another")
    assert mark_sources(root) != before


@pytest.mark.parametrize(
    "name", ["dbt/target/run/a.sql", "data/a.csv", ".floe/x.py", "assets/__pycache__/bronze.py"]
)
def test_what_is_made_does_not(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    before = mark_sources(root)
    (root / name).write_text("another")
    assert mark_sources(root) == before


def test_a_file_that_goes_counts(root: Path) -> None:
    before = mark_sources(root)
    (root / "sql" / "a.sql").unlink()
    assert mark_sources(root) != before


def test_a_file_that_is_not_there_is_left_out(root: Path) -> None:
    there, absent = root / "data" / "a.csv", root / "absent"
    assert list(mark_files([there, absent])) == [there]
