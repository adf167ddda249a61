"""A separate job host for every test: its spool, settings and a controllable API."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.fake_api import FakeApi


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host where only the spool folder is set."""
    for name in ("API_URL", "API_TOKEN", "SPOOL_LIMIT", "LAKE", "RUN_ID", "PROJECT"):
        monkeypatch.delenv(f"FLOE_{name}", raising=False)
    monkeypatch.setenv("FLOE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """An API that accepts everything by default."""
    with FakeApi() as api:
        monkeypatch.setenv("FLOE_API_URL", api.url)
        yield api
