"""Sessions: one for each run, isolated from each other."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession

from floe.execution.site import Site
from floe.execution.spark.server import Server, server_status
from floe.execution.spark.session import (
    SharedSession,
    close_session,
    interrupt,
    is_lost,
    offer_session,
    open_session,
)
from tests.execution.sites import make_site

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

MODULES = ["session", "server", "server_settings", "errors"]


@pytest.mark.parametrize("module", MODULES)
def test_importing_loads_no_pyspark(module: str) -> None:
    code = f"import sys, floe.execution.spark.{module}; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.java
@pytest.mark.slow
class TestOnAServer:
    """Tests on the shared server."""

    def test_a_lake_table_is_written_and_read(self, spark: "ConnectSession") -> None:
        spark.sql("CREATE NAMESPACE IF NOT EXISTS sessions")
        spark.sql("CREATE OR REPLACE TABLE sessions.t AS SELECT 1 AS id")
        assert spark.table("sessions.t").collect()[0].id == 1

    def test_sessions_do_not_see_the_views_and_settings_of_each_other(
        self, spark: "ConnectSession", spark_site: Site, spark_server: Server
    ) -> None:
        conf = {"spark.wap.branch": "run42"}
        other = open_session(spark_site, spark_server, conf=conf)
        assert other.session_id != spark.session_id
        other.sql("CREATE TEMP VIEW mine AS SELECT 1")
        assert not spark.catalog.tableExists("mine")
        assert other.conf.get("spark.wap.branch") == "run42"
        assert spark.conf.get("spark.wap.branch", "none") == "none"
        close_session(other)
        with pytest.raises(Exception, match="NO_ACTIVE_SESSION") as raised:
            other.sql("SELECT 1")
        assert is_lost(raised.value)
        assert spark.sql("SELECT 1 AS one").collect()[0].one == 1

    def test_an_invalid_setting_is_an_error(self, spark_site: Site, spark_server: Server) -> None:
        with pytest.raises(Exception, match=r"spark\.sql\.extensions"):
            open_session(spark_site, spark_server, conf={"spark.sql.extensions": "x"})

    def test_concurrent_runs_have_separate_sessions(
        self, spark_site: Site, spark_server: Server
    ) -> None:
        def run(value: int) -> int:
            session = open_session(spark_site, spark_server)
            answer = session.sql(f"SELECT {value} AS n").collect()[0].n
            close_session(session)
            return int(answer)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(run, range(24))) == list(range(24))

    def test_a_running_query_is_interrupted_and_the_session_stays_open(
        self, spark: "ConnectSession"
    ) -> None:
        # Spark does not stop the tasks of a query that is interrupted before they start.
        under_way = Event()

        def watch(stages: Iterable[object] | None, *_: object, **__: object) -> None:
            if stages:
                under_way.set()

        spark.registerProgressHandler(watch)  # type: ignore[arg-type]
        failed: list[Exception] = []
        count = "SELECT count(*) FROM range(100000000000) WHERE id % 7 = rand()"
        thread = Thread(target=lambda: _collect(spark, count, failed.append))
        thread.start()
        assert under_way.wait(60)
        interrupt(spark)
        thread.join()
        assert "OPERATION_CANCELED" in str(failed[0])
        assert not is_lost(failed[0])
        assert spark.sql("SELECT 1 AS one").collect()[0].one == 1

    def test_python_functions_run_in_the_callers_python(self, spark: "ConnectSession") -> None:
        from pyspark.sql.functions import udf

        where = udf(lambda _: sys.executable, "string")
        assert spark.range(1).select(where("id").alias("x")).collect()[0].x == sys.executable

    def test_pyspark_does_not_print_a_failed_query(
        self, spark: "ConnectSession", capfd: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql("SELECT * FROM nothing").collect()
        assert capfd.readouterr().err == ""


def _collect(session: "ConnectSession", sql: str, on_error: Callable[[Exception], None]) -> None:
    try:
        session.sql(sql).collect()
    except Exception as error:  # noqa: BLE001
        on_error(error)


def test_an_unused_session_starts_no_server(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    with offer_session(SharedSession(site)):
        pass
    assert server_status(site).state == "stopped"


@pytest.mark.java
def test_get_or_create_returns_a_session_of_the_platform(
    spark_site: Site, spark_server: Server
) -> None:
    assert "SPARK_REMOTE" not in os.environ
    with offer_session(SharedSession(spark_site)) as ambient:
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
def test_a_kept_session_is_reused_when_it_is_offered_again(
    spark_site: Site, spark_server: Server
) -> None:
    ambient = SharedSession(spark_site)
    with offer_session(ambient, keep=True):
        first: Any = SparkSession.builder.getOrCreate()
    assert "SPARK_REMOTE" not in os.environ
    with offer_session(ambient, keep=True):
        assert os.environ.get("SPARK_REMOTE") is None
        again: Any = SparkSession.builder.getOrCreate()
        assert again is first
        assert os.environ["SPARK_REMOTE"] == spark_server.url
    ambient.close()
    assert first.is_stopped
