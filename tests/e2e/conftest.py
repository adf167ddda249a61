"""The demo's day, which is brought up and run once for all who look at it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.shops import copy_shop, processes_of, start_demo


@dataclass(frozen=True)
class Demo:
    """A copy of the shop after `make demo` without a terminal: what it said, and what it left."""

    root: Path
    code: int
    said: str
    left: list[str]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo, run to its end."""
    root = copy_shop(tmp_path_factory.mktemp("demo") / "shop")
    process = start_demo(root)
    said, _ = process.communicate()
    return Demo(root, process.returncode, said, processes_of(root))
