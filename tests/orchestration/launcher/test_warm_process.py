"""A project has changed when its source files have."""

from pathlib import Path

import pytest

from floe.orchestration.launcher.warm_process import stamp_files, stamp_sources


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
def test_edited_source_files_count_as_a_change(root: Path, name: str) -> None:
    before = stamp_sources(root)
    (root / name).write_text("another")
    assert stamp_sources(root) != before


@pytest.mark.parametrize(
    "name", ["dbt/target/run/a.sql", "data/a.csv", ".floe/x.py", "assets/__pycache__/bronze.py"]
)
def test_generated_files_do_not_count_as_a_change(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    before = stamp_sources(root)
    (root / name).write_text("another")
    assert stamp_sources(root) == before


def test_a_deleted_file_counts_as_a_change(root: Path) -> None:
    before = stamp_sources(root)
    (root / "sql" / "a.sql").unlink()
    assert stamp_sources(root) != before


def test_a_missing_file_has_no_stamp(root: Path) -> None:
    there, absent = root / "data" / "a.csv", root / "absent"
    assert list(stamp_files([there, absent])) == [there]
