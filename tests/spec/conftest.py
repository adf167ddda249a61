"""Fixtures for tests of the spec: projects in temporary folders."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from floe.settings import ProjectPaths
from floe.spec import Finding, validate_project

Write = Callable[..., ProjectPaths]
Find = Callable[..., list[str]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write floe.yaml and other files; their names can contain folders."""

    def write(floe_yaml: str, files: dict[str, str] | None = None) -> ProjectPaths:
        for name, text in {"floe.yaml": floe_yaml, **(files or {})}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        return ProjectPaths(tmp_path)

    return write


@pytest.fixture
def find(write: Write) -> Find:
    """Validate a project; return its findings as shown to the user."""

    def find(floe_yaml: str, files: dict[str, str] | None = None) -> list[str]:
        findings: tuple[Finding, ...] = validate_project(write(floe_yaml, files), {}).findings
        return [str(finding) for finding in findings]

    return find
