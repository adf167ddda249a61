"""A project with a running Spark server, shared by all tests; and a session for each."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from floe.execution.site import Site
from floe.execution.spark.server import Server, ensure_server, stop_server
from floe.execution.spark.session import close_session, open_session
from floe.settings import ProjectPaths
from floe.spec import PlatformSpec, ProjectSpec
from floe.spec.platform import Compute

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


def make_site(root: Path, platform: PlatformSpec | None = None) -> Site:
    """A project in a folder. Its server takes little: tests run several at once."""
    (root / "floe.yaml").write_text("name: test\n")
    small = PlatformSpec(compute={"default": Compute(memory="1g")})
    return Site(paths=ProjectPaths(root), spec=ProjectSpec(name="test"), platform=platform or small)


@pytest.fixture(scope="session")
def spark_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A project that has a Spark server. Its lake is shared: give tables names of your own."""
    return make_site(tmp_path_factory.mktemp("spark_site"))


@pytest.fixture(scope="session")
def spark_server(spark_site: Site) -> Iterator[Server]:
    """The server of that project, running."""
    yield ensure_server(spark_site)
    stop_server(spark_site)


@pytest.fixture
def spark(spark_site: Site, spark_server: Server) -> Iterator["SparkSession"]:
    """A session of the test's own on that server."""
    session = open_session(spark_site, spark_server)
    yield session
    close_session(session)
