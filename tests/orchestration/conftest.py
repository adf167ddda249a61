"""What tests of orchestration share: each leaves Python's modules as it found them."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def modules_as_before() -> Iterator[None]:
    """Forget the modules of a test's project: the next one may have some of the same name."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if "site-packages" not in file and "floe" not in name.split("."):
            del sys.modules[name]
