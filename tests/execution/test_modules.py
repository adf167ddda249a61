"""Modules of the user's project are imported, and those of another project are not."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from floe.execution.modules import ModuleNotLoadedError, load_module, load_package
from tests.execution.formats.places import make_site, put


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def test_a_package_is_imported_with_all_that_is_in_it(tmp_path: Path) -> None:
    for name in ("__init__", "b", "a", "deep/er/c", "__main__"):
        put(tmp_path / f"acme_all/{name}.py", "")
    put(tmp_path / "acme_all/notes.txt", "")
    put(tmp_path / "acme_all/empty/readme.md", "")
    found = [module.__name__ for module in load_package(make_site(tmp_path), "acme_all")]
    assert found == [
        "acme_all",
        "acme_all.a",
        "acme_all.b",
        "acme_all.deep",
        "acme_all.deep.er",
        "acme_all.deep.er.c",
    ]


def test_what_another_project_imported_is_forgotten(tmp_path: Path) -> None:
    for number in (1, 2):
        put(tmp_path / f"p{number}/acme_main.py", "from acme_help import number\n")
        put(tmp_path / f"p{number}/acme_help.py", f"number = {number}\n")
    put(tmp_path / "p1/acme_only.py", "")
    one, two = make_site(tmp_path / "p1"), make_site(tmp_path / "p2")
    assert load_module(one, "acme_main").number == 1
    load_module(one, "acme_only")
    assert load_module(two, "acme_main").number == 2
    with pytest.raises(ModuleNotLoadedError, match="no module 'acme_only'"):
        load_module(two, "acme_only")


def test_a_module_that_is_loaded_stays_the_same(tmp_path: Path) -> None:
    put(tmp_path / "acme_same.py", "")
    site = make_site(tmp_path)
    assert load_module(site, "acme_same") is load_module(site, "acme_same")


def test_an_error_in_a_library_is_told_at_the_line_that_called_it(tmp_path: Path) -> None:
    put(tmp_path / "acme_json.py", "import json\n\njson.loads('{')\n")
    with pytest.raises(ModuleNotLoadedError) as stopped:
        load_module(make_site(tmp_path), "acme_json")
    assert stopped.value.reason.startswith("acme_json.py:3: JSONDecodeError: ")
