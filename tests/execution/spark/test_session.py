"""Sessions: one for each run, apart from each other."""

import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from floe.execution.site import Site
from floe.execution.spark.server import Server
from floe.execution.spark.session import close_session, interrupt, is_lost, open_session

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

MODULES = ["session", "server", "settings", "faults"]


@pytest.mark.parametrize("module", MODULES)
def test_importing_loads_no_pyspark(module: str) -> None:
    code = f"import sys, floe.execution.spark.{module}; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.java
@pytest.mark.slow
class TestOnAServer:
    """All on the server that the tests share."""

    def test_a_lake_table_is_written_and_read(self, spark: "SparkSession") -> None:
        spark.sql("CREATE NAMESPACE IF NOT EXISTS sessions")
        spark.sql("CREATE OR REPLACE TABLE sessions.t AS SELECT 1 AS id")
        assert spark.table("sessions.t").collect()[0].id == 1

    def test_sessions_do_not_see_the_views_and_settings_of_each_other(
        self, spark: "SparkSession", spark_site: Site, spark_server: Server
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

    def test_a_setting_that_cannot_be_made_is_an_error(
        self, spark_site: Site, spark_server: Server
    ) -> None:
        with pytest.raises(Exception, match=r"spark\.sql\.extensions"):
            open_session(spark_site, spark_server, conf={"spark.sql.extensions": "x"})

    def test_many_runs_at_once_have_a_session_each(
        self, spark_site: Site, spark_server: Server
    ) -> None:
        def run(number: int) -> int:
            session = open_session(spark_site, spark_server)
            answer = session.sql(f"SELECT {number} AS n").collect()[0].n
            close_session(session)
            return int(answer)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(run, range(24))) == list(range(24))

    def test_a_query_under_way_is_interrupted_and_the_session_stays(
        self, spark: "SparkSession"
    ) -> None:
        # Spark forgets to end the tasks of a query that is interrupted before they have begun.
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

    def test_python_functions_run_in_the_python_that_they_come_from(
        self, spark: "SparkSession"
    ) -> None:
        from pyspark.sql.functions import udf

        where = udf(lambda _: sys.executable, "string")
        assert spark.range(1).select(where("id").alias("x")).collect()[0].x == sys.executable

    def test_a_failed_query_is_not_printed_behind_our_back(
        self, spark: "SparkSession", capfd: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql("SELECT * FROM nothing").collect()
        assert capfd.readouterr().err == ""


def _collect(session: "SparkSession", sql: str, on_error: Callable[[Exception], None]) -> None:
    try:
        session.sql(sql).collect()
    except Exception as error:  # noqa: BLE001
        on_error(error)
