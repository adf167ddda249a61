"""Functions of the user's project are loaded by name, and errors lead to file and line."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from floe.execution.functions import FunctionNotLoadedError, load_function
from tests.execution.formats.places import make_site, put


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def test_a_function_is_found_in_the_projects_folder(tmp_path: Path) -> None:
    put(tmp_path / "acme_risk/__init__.py", "")
    put(tmp_path / "acme_risk/rates.py", "def estimate(): return 7\n")
    site = make_site(tmp_path)
    assert load_function(site, "acme_risk.rates.estimate")() == 7
    assert load_function(site, "acme_risk.rates:estimate")() == 7


def test_two_projects_may_have_packages_of_one_name(tmp_path: Path) -> None:
    for number in (1, 2):
        put(tmp_path / f"p{number}/acme_jobs.py", f"def run(): return {number}\n")
    one, two = make_site(tmp_path / "p1"), make_site(tmp_path / "p2")
    assert load_function(one, "acme_jobs.run")() == 1
    assert load_function(two, "acme_jobs.run")() == 2
    assert load_function(one, "acme_jobs.run")() == 1


def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path) -> None:
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
