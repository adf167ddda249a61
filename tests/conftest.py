"""What every test may ask for: an empty catalog on each store, and the servers behind it."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from floe.catalog.database import Catalog, open_catalog
from floe.catalog.migrate import upgrade_catalog
from floe.execution.site import Site
from floe.execution.spark.server import Server, ensure_server, stop_server
from floe.execution.spark.session import close_session, open_session
from tests.execution.sites import make_site
from tools.postgresql import PostgresqlServer

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

# The JVMs of tests live for minutes: what it takes to make them fast later is not worth its while.
HASTY = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
os.environ.setdefault("JAVA_TOOL_OPTIONS", " ".join(HASTY))

STORES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """A PostgreSQL server for the whole test session. Nothing here has to survive a power cut."""
    settings = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    with PostgresqlServer(settings) as server:
        yield server


@pytest.fixture(params=STORES)
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database: the same test runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'catalog.db'}"
        return
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    name = f"test_{uuid.uuid4().hex}"
    yield server.create_database(name)
    server.drop_database(name)


@pytest.fixture(params=STORES)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """An empty catalog with all its tables: a copy of one that was migrated once."""
    with new_catalog(request, tmp_path) as catalog:
        yield catalog


@contextmanager
def new_catalog(request: pytest.FixtureRequest, folder: Path) -> Iterator[Catalog]:
    """Copy the empty catalog of the store that a fixture is asked for."""
    if request.param == "sqlite":
        copy = folder / "catalog.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), copy)
        catalog = open_catalog(f"sqlite:///{copy}")
        yield catalog
        catalog.close()
        return
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    template: str = request.getfixturevalue("postgresql_template")
    name = f"test_{uuid.uuid4().hex}"
    catalog = open_catalog(server.create_database(name, template=template))
    yield catalog
    catalog.close()
    server.drop_database(name)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated catalog to copy."""
    path = tmp_path_factory.mktemp("template") / "catalog.db"
    _migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgresql_template(postgresql: PostgresqlServer) -> str:
    """A migrated database to copy."""
    _migrate(postgresql.create_database("template_catalog"))
    return "template_catalog"


@pytest.fixture(scope="session")
def spark_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A project that has a Spark server. Its lake is shared: give tables names of your own."""
    return make_site(tmp_path_factory.mktemp("spark_site"))


@pytest.fixture(scope="session")
def spark_server(spark_site: Site) -> Iterator[Server]:
    """The server of that project, running: one for the whole test session."""
    yield ensure_server(spark_site)
    stop_server(spark_site)


@pytest.fixture
def spark(spark_site: Site, spark_server: Server) -> Iterator["SparkSession"]:
    """A session of the test's own on that server."""
    session = open_session(spark_site, spark_server)
    yield session
    close_session(session)


def _migrate(url: str) -> None:
    catalog = open_catalog(url)
    upgrade_catalog(catalog)
    catalog.close()
