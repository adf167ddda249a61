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
def test_a_glob_stays_within_its_folders(pattern: str, path: str, counts: bool) -> None:
    assert matches_glob(pattern, path) is counts


def everything(path: str) -> bool:
    return True


def test_a_look_goes_deep_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.csv").write_text("2")
    (tmp_path / "a.csv").write_text("1")
    folder = LocalFolder(tmp_path)
    assert [file.path for file in folder.look(everything, deep=False)] == ["a.csv"]
    assert sorted(file.path for file in folder.look(everything, deep=True)) == ["a.csv", "in/b.csv"]


def test_links_to_nothing_and_folders_in_circles_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nowhere")
    (tmp_path / "circle").symlink_to(tmp_path)
    (tmp_path / "a.csv").write_text("1")
    found = LocalFolder(tmp_path).look(everything, deep=True)
    assert [file.path for file in found] == ["a.csv"]


def test_a_file_that_is_replaced_has_another_mark() -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/marks/in/a.csv", b"one")
    folder = RemoteFolder("memory://marks")
    [before] = folder.look(everything, deep=True)
    [same] = folder.look(everything, deep=True)
    files.pipe("/marks/in/a.csv", b"two")
    [after] = folder.look(everything, deep=True)
    assert (before.path, before.url, before.size) == ("in/a.csv", "memory:///marks/in/a.csv", 3)
    assert before.mark == same.mark != after.mark


@pytest.mark.parametrize("deep", [True, False])
def test_a_folder_that_does_not_exist_is_not_an_empty_one(deep: bool, tmp_path: Path) -> None:
    for folder in (RemoteFolder("memory://nowhere/at/all"), LocalFolder(tmp_path / "nowhere")):
        with pytest.raises(FileNotFoundError):
            list(folder.look(everything, deep))


def test_who_logs_in_is_not_shown() -> None:
    assert shown("sftp://bank:hunter2@host/in") == "sftp://***@host/in"
    assert shown("/data/a@b/in") == "/data/a@b/in"
