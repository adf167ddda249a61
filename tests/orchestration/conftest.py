"""Shared by the tests of orchestration: each test forgets the modules that it loaded."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(autouse=True)
def modules_as_before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget the modules of a test's project, because another test may use the same names."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    folder, new = tmp_path_factory.getbasetemp(), set(sys.modules) - modules
    for name in [name for name in new if is_below(folder, sys.modules[name])]:
        del sys.modules[name]
    sys.path[:] = path


def is_below(folder: Path, module: ModuleType) -> bool:
    """Tell whether a module, or a folder without __init__.py, was loaded from a folder."""
    file = getattr(module, "__file__", None)
    places = [file] if file else list(getattr(module, "__path__", []))
    return any(Path(position).is_relative_to(folder) for position in places)
