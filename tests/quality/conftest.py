"""A real Spark for the tests that run what is planned."""

from tests.execution.conftest import spark, spark_server, spark_site

__all__ = ["spark", "spark_server", "spark_site"]
