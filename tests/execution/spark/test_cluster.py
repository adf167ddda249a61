"""The same project on a real cluster: only compute.url differs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from floe.execution.spark.server import ensure_server, server_status, stop_server
from floe.execution.spark.session import close_session, open_session
from floe.spec import PlatformSpec
from floe.spec.platform import Compute
from tests.execution.sites import make_site
from tools.spark_cluster import FullJdkMissingError, StandaloneCluster

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture
def cluster() -> Iterator[StandaloneCluster]:
    try:
        cluster = StandaloneCluster()
    except FullJdkMissingError as missing:
        pytest.skip(str(missing))
    with cluster:
        yield cluster


def test_a_cluster_writes_and_reads_lake_tables_and_runs_python(
    tmp_path: Path, cluster: StandaloneCluster
) -> None:
    compute = Compute(url=cluster.url, memory="1g", conf={"spark.executor.memory": "512m"})
    site = make_site(tmp_path, PlatformSpec(compute={"default": compute}))
    try:
        server = ensure_server(site)
        session = open_session(site, server)
        session.sql("CREATE NAMESPACE night")
        session.range(1000, numPartitions=4).writeTo("night.ids").create()
        assert session.table("night.ids").count() == 1000

        from pyspark.sql.functions import udf

        half = udf(lambda value: value // 2, "long")
        answer = session.table("night.ids").select(half("id").alias("half")).agg({"half": "max"})
        assert answer.collect()[0][0] == 499
        assert server_status(site).master == cluster.url
        close_session(session)
    finally:
        stop_server(site)
