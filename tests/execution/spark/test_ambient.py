"""Code that asks Spark for a session gets the platform's."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from floe.execution.site import Site
from floe.execution.spark.ambient import Ambient, offered
from floe.execution.spark.server import Server, server_status
from tests.execution.sites import make_site


def test_a_session_that_nobody_asks_for_starts_no_server(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    with offered(Ambient(site)):
        pass
    assert server_status(site).state == "stopped"


@pytest.mark.java
def test_whoever_asks_spark_for_a_session_gets_the_platforms(
    spark_site: Site, spark_server: Server
) -> None:
    assert "SPARK_REMOTE" not in os.environ
    with offered(Ambient(spark_site)) as ambient:
        first = SparkSession.builder.appName("mine").config("spark.sql.ansi.enabled", "false")
        session: Any = first.getOrCreate()
        assert session is ambient.session()
        assert session.conf.get("spark.sql.ansi.enabled") == "false"
        assert os.environ["SPARK_REMOTE"] == spark_server.url
        session.stop()
        another: Any = SparkSession.builder.getOrCreate()
        assert another is ambient.session() is not session
        assert another.range(3).count() == 3
    assert another.is_stopped
    assert "SPARK_REMOTE" not in os.environ


@pytest.mark.java
def test_a_session_that_is_kept_is_the_same_when_it_is_offered_again(
    spark_site: Site, spark_server: Server
) -> None:
    ambient = Ambient(spark_site)
    with offered(ambient, keep=True):
        first: Any = SparkSession.builder.getOrCreate()
    assert "SPARK_REMOTE" not in os.environ
    with offered(ambient, keep=True):
        assert os.environ.get("SPARK_REMOTE") is None
        again: Any = SparkSession.builder.getOrCreate()
        assert again is first
        assert os.environ["SPARK_REMOTE"] == spark_server.url
    ambient.close()
    assert first.is_stopped
