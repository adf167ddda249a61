from pathlib import Path

import fsspec  # type: ignore[import-untyped]
import pytest

from floe.orchestration.sensors.folders import LocalFolder, RemoteFolder, matches_glob, shown


@pytest.mark.parametrize(
    ("pattern", "path", "counts"),
    [
        ("*.csv", "a.csv", True),
        ("*.csv", "a.csv.part", False),
        ("*.csv", "in/a.csv", False),
        ("*", ".a.csv", False),
        (".*.csv", ".a.csv", True),
        ("in/*.csv", "in/a.csv", True),
        ("in/*.csv", "in/b/a.csv", False),
        ("**/*.csv", "a.csv", True),
        ("**/*.csv", "in/b/a.csv", True),
        ("**/*.csv", ".trash/a.csv", False),
        ("in/**", "in/b/a.csv", True),
        ("in/**", "out/a.csv", False),
        ("a[0-9].csv", "a1.csv", True),
        ("A.csv", "a.csv", False),
    ],
)
def test_a_glob_matches_within_its_folders(pattern: str, path: str, counts: bool) -> None:
    assert matches_glob(pattern, path) is counts


def everything(path: str) -> bool:
    return True


def test_subfolders_are_listed_only_with_deep(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.csv").write_text("2")
    (tmp_path / "a.csv").write_text("1")
    folder = LocalFolder(tmp_path)
    assert [file.path for file in folder.list_files(everything, deep=False)] == ["a.csv"]
    assert sorted(file.path for file in folder.list_files(everything, deep=True)) == [
        "a.csv",
        "in/b.csv",
    ]


def test_broken_and_circular_links_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nowhere")
    (tmp_path / "circle").symlink_to(tmp_path)
    (tmp_path / "a.csv").write_text("1")
    result = LocalFolder(tmp_path).list_files(everything, deep=True)
    assert [file.path for file in result] == ["a.csv"]


def test_a_replaced_file_has_a_different_mark() -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/marks/in/a.csv", b"one")
    folder = RemoteFolder("memory://marks")
    [before] = folder.list_files(everything, deep=True)
    [same] = folder.list_files(everything, deep=True)
    files.pipe("/marks/in/a.csv", b"two")
    [after] = folder.list_files(everything, deep=True)
    assert (before.path, before.url, before.size) == ("in/a.csv", "memory:///marks/in/a.csv", 3)
    assert before.mark == same.mark != after.mark


@pytest.mark.parametrize("deep", [True, False])
def test_a_missing_folder_is_an_error_not_an_empty_folder(deep: bool, tmp_path: Path) -> None:
    for folder in (RemoteFolder("memory://nowhere/at/all"), LocalFolder(tmp_path / "nowhere")):
        with pytest.raises(FileNotFoundError):
            list(folder.list_files(everything, deep))


def test_credentials_are_not_shown() -> None:
    assert shown("sftp://bank:hunter2@host/in") == "sftp://***@host/in"
    assert shown("/data/a@b/in") == "/data/a@b/in"
