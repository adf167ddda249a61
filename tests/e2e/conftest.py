"""The demo, run once for all tests that read its results."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.shops import copy_shop, processes_of, start_demo


@dataclass(frozen=True)
class Demo:
    """A copy of the shop after `make demo` without a terminal."""

    root: Path
    code: int
    output: str
    left: list[str]
    """The processes that still run."""


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo, run to its end."""
    root = copy_shop(tmp_path_factory.mktemp("demo") / "shop")
    process = start_demo(root)
    output, _ = process.communicate()
    return Demo(root, process.returncode, output, processes_of(root))
