"""Fixtures: the API in this process, on a real catalog."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from floe.api import create_app
from floe.catalog.database import Catalog, open_catalog
from floe.catalog.principals import DATA_OWNER, ROLES, create_token
from tests.events.factory import FOREVER

TEAM = "Credit Risk"


@pytest.fixture
def catalog(sqlite_template: Path, tmp_path: Path) -> Iterator[Catalog]:
    """An empty catalog on SQLite; tests of the catalog cover the other stores."""
    copy = tmp_path / "catalog.db"
    shutil.copyfile(sqlite_template, copy)
    catalog = open_catalog(f"sqlite:///{copy}")
    yield catalog
    catalog.close()


@pytest.fixture
def tokens(catalog: Catalog) -> dict[str, str]:
    """A token in each role."""
    with catalog.writing() as session:
        return {
            role: create_token(
                session,
                role.lower(),
                role,
                actor="test",
                team=TEAM if role == DATA_OWNER else None,
            ).text
            for role in ROLES
        }


@pytest.fixture
def anonymous(catalog: Catalog) -> Iterator[TestClient]:
    """A client without a token."""
    app = create_app(catalog, retention=FOREVER)
    with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def admin(anonymous: TestClient, tokens: dict[str, str]) -> TestClient:
    """A client that may do everything."""
    anonymous.headers["Authorization"] = f"Bearer {tokens['PLATFORM_ADMIN']}"
    return anonymous


@pytest.fixture
def as_role(anonymous: TestClient, tokens: dict[str, str]) -> Callable[[str], TestClient]:
    """Switch a client to another role."""

    def become(role: str) -> TestClient:
        anonymous.headers["Authorization"] = f"Bearer {tokens[role]}"
        return anonymous

    return become
