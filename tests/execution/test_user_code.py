"""Modules are imported from the user's project, not from another one."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from floe.execution.user_code import (
    FunctionNotLoadedError,
    ModuleNotLoadedError,
    load_function,
    load_module,
    load_package,
)
from tests.execution.formats.factory import make_site, put


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def test_a_package_is_imported_with_all_its_modules(tmp_path: Path) -> None:
    for name in ("__init__", "b", "a", "deep/er/c", "__main__"):
        put(tmp_path / f"acme_all/{name}.py", "")
    put(tmp_path / "acme_all/notes.txt", "")
    put(tmp_path / "acme_all/empty/readme.md", "")
    names = [module.__name__ for module in load_package(make_site(tmp_path), "acme_all")]
    assert names == [
        "acme_all",
        "acme_all.a",
        "acme_all.b",
        "acme_all.deep",
        "acme_all.deep.er",
        "acme_all.deep.er.c",
    ]


def test_modules_of_another_project_are_forgotten(tmp_path: Path) -> None:
    for index in (1, 2):
        put(tmp_path / f"p{index}/acme_main.py", "from acme_help import number\n")
        put(tmp_path / f"p{index}/acme_help.py", f"number = {index}\n")
    put(tmp_path / "p1/acme_only.py", "")
    first, second = make_site(tmp_path / "p1"), make_site(tmp_path / "p2")
    assert load_module(first, "acme_main").number == 1
    load_module(first, "acme_only")
    assert load_module(second, "acme_main").number == 2
    with pytest.raises(ModuleNotLoadedError, match="no module 'acme_only'"):
        load_module(second, "acme_only")


def test_a_module_that_is_loaded_stays_the_same(tmp_path: Path) -> None:
    put(tmp_path / "acme_same.py", "")
    site = make_site(tmp_path)
    assert load_module(site, "acme_same") is load_module(site, "acme_same")


def test_an_error_in_a_library_names_the_line_that_called_it(tmp_path: Path) -> None:
    put(tmp_path / "acme_json.py", "import json\n\njson.loads('{')\n")
    with pytest.raises(ModuleNotLoadedError) as stopped:
        load_module(make_site(tmp_path), "acme_json")
    assert stopped.value.reason.startswith("acme_json.py:3: JSONDecodeError: ")


def test_a_function_is_found_in_the_projects_folder(tmp_path: Path) -> None:
    put(tmp_path / "acme_risk/__init__.py", "")
    put(tmp_path / "acme_risk/rates.py", "def estimate(): return 7\n")
    site = make_site(tmp_path)
    assert load_function(site, "acme_risk.rates.estimate")() == 7
    assert load_function(site, "acme_risk.rates:estimate")() == 7


def test_two_projects_may_have_packages_of_the_same_name(tmp_path: Path) -> None:
    for index in (1, 2):
        put(tmp_path / f"p{index}/acme_jobs.py", f"def run(): return {index}\n")
    first, second = make_site(tmp_path / "p1"), make_site(tmp_path / "p2")
    assert load_function(first, "acme_jobs.run")() == 1
    assert load_function(second, "acme_jobs.run")() == 2
    assert load_function(first, "acme_jobs.run")() == 1


def test_an_error_names_its_file_and_line(tmp_path: Path) -> None:
    put(tmp_path / "acme_bad.py", "x = 1\ny = x / 0\n")
    put(tmp_path / "acme_syntax.py", "x = 1\ndef run(:\n")
    put(tmp_path / "acme_needs.py", "import no_such_library\n")
    put(tmp_path / "acme_good.py", "limit = 1\ndef run(): ...\n")
    site = make_site(tmp_path)
    for reference, reason in (
        ("acme_bad.run", r"acme_bad\.py:2: ZeroDivisionError"),
        ("acme_syntax.run", r"acme_syntax\.py:2: "),
        ("acme_needs.run", r"acme_needs\.py:1: ModuleNotFoundError: .*no_such_library"),
        ("acme_nowhere.run", "no module 'acme_nowhere' in "),
        ("acme_good.rum", r"acme_good\.py has no 'rum'\. Did you mean 'run'"),
        ("acme_good.limit", r"'limit' in .*acme_good\.py is not a function"),
    ):
        with pytest.raises(FunctionNotLoadedError, match=reason):
            load_function(site, reference)
