"""A command's caller is identified by a token only."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from floe.catalog import Catalog, open_ready_catalog
from floe.catalog.principals import create_token
from floe.cli.context import roles_of_caller
from floe.settings import ProjectPaths


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    monkeypatch.delenv("FLOE_API_TOKEN", raising=False)
    catalog = open_ready_catalog(f"sqlite:///{tmp_path / 'catalog.db'}")
    yield catalog
    catalog.close()


def token(catalog: Catalog, role: str, lasts: timedelta | None = None, scope: str = "all") -> str:
    with catalog.writing() as session:
        made = create_token(session, role, role, actor="test", lasts=lasts, scopes=[scope])
    return made.text


def test_the_token_of_the_environment_overrides_that_of_the_project(
    home: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ProjectPaths(tmp_path)
    assert roles_of_caller(home, paths) == frozenset()
    paths.state_dir.mkdir()
    (paths.state_dir / "token").write_text(token(home, "DATA_CONSUMER") + "\n")
    assert roles_of_caller(home, paths) == {"DATA_CONSUMER"}
    monkeypatch.setenv("FLOE_API_TOKEN", token(home, "DATA_STEWARD"))
    assert roles_of_caller(home, paths) == {"DATA_STEWARD"}


def test_an_unknown_expired_or_ingest_token_gives_no_role(
    home: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = token(home, "DATA_STEWARD", lasts=timedelta(0))
    for text in ("floe_nonsense", over, token(home, "PLATFORM_ADMIN", scope="ingest")):
        monkeypatch.setenv("FLOE_API_TOKEN", text)
        assert roles_of_caller(home, ProjectPaths(tmp_path)) == frozenset()
