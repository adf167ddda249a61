"""A project in a folder, and services that are small programs."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from floe.services.service import Service
from floe.settings import ProjectPaths

MakeService = Callable[..., Service]


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    (tmp_path / "floe.yaml").write_text("name: night\n")
    return ProjectPaths(tmp_path)


@pytest.fixture
def service(tmp_path: Path) -> MakeService:
    """Make a service out of a piece of Python."""

    def make(name: str, code: str = "import time; time.sleep(600)", **facts: Any) -> Service:
        given: dict[str, Any] = {"environ": {}, **facts}
        command = (sys.executable, "-c", code)
        return Service(name, command, tmp_path / f"{name}.log", tmp_path, **given)

    return make
