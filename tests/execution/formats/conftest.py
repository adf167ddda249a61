"""Fixtures of the format tests."""

from pathlib import Path

import pytest

from floe.execution.site import Site
from tests.execution.formats.factory import make_site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty project on the embedded platform."""
    return make_site(tmp_path)
