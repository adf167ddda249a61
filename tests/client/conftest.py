"""A job host of its own for every test: its spool, its settings, and an API that can be told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.fake_api import FakeApi


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host where nothing is set but the spool."""
    for name in ("API_URL", "API_TOKEN", "SPOOL_LIMIT", "LAKE", "RUN_ID", "PROJECT"):
        monkeypatch.delenv(f"FLOE_{name}", raising=False)
    monkeypatch.setenv("FLOE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """An API that takes everything, until it is told otherwise."""
    with FakeApi() as api:
        monkeypatch.setenv("FLOE_API_URL", api.url)
        yield api
