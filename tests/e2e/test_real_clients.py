"""Standard OpenLineage clients send events to floe; `floe lineage` shows their work."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport

from floe.execution.jars import OPENLINEAGE_PACKAGES, SPARK_PACKAGES, resolve_jars
from floe.execution.java import find_java, spark_environ, spark_submit
from tests.events.factory import PRODUCER, run_id
from tools.running_api import FLOE, RunningApi


@pytest.fixture
def api(tmp_path: Path) -> Iterator[RunningApi]:
    with RunningApi(tmp_path, f"sqlite:///{tmp_path / 'catalog.db'}") as running:
        yield running


def lineage(api: RunningApi, name: str) -> dict[str, Any]:
    """Return the output of `floe lineage`."""
    done = subprocess.run(
        [FLOE, "lineage", name, "--upstream", "--json"],
        env={"FLOE_CATALOG_URL": api.url, "PATH": ""},
        cwd=api.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    graph: dict[str, Any] = json.loads(done.stdout)
    return graph


@pytest.mark.slow
def test_the_openlineage_python_client_sends_events_with_its_api_key(api: RunningApi) -> None:
    config = HttpConfig(
        url=f"http://127.0.0.1:{api.port}", auth=ApiKeyTokenProvider({"apiKey": api.token})
    )
    client = OpenLineageClient(transport=HttpTransport(config))
    for state, minute in ((RunState.START, 0), (RunState.COMPLETE, 5)):
        client.emit(
            RunEvent(
                eventType=state,
                eventTime=f"2026-09-01T06:{minute:02d}:00Z",
                run=Run(run_id("nightly")),
                job=Job("airflow", "credit.exposure"),
                producer=PRODUCER,
                inputs=[InputDataset("lake", "market.fx")],
                outputs=[OutputDataset("lake", "credit.exposure")],
            )
        )
    client.close()
    assert "market.fx" in json.dumps(lineage(api, "credit.exposure"))


SPARK_JOB = """
import sys
from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.appName("night").getOrCreate()
spark.range(10).selectExpr("id", "id * 2 AS amount").write.parquet(f"{folder}/positions")
positions = spark.read.parquet(f"{folder}/positions")
positions.groupBy("id").sum("amount").withColumnRenamed("sum(amount)", "total").write.parquet(
    f"{folder}/exposure"
)
spark.stop()
"""


def run_spark(api: RunningApi, folder: Path, job_text: str) -> None:
    """Run a Spark job with the OpenLineage listener."""
    job = folder / "job.py"
    job.write_text(job_text)
    jars = resolve_jars([*SPARK_PACKAGES, *OPENLINEAGE_PACKAGES])
    settings = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.jars": ",".join(map(str, jars)),
        "spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener",
        "spark.openlineage.transport.type": "http",
        "spark.openlineage.transport.url": f"http://127.0.0.1:{api.port}",
        "spark.openlineage.transport.auth.type": "api_key",
        "spark.openlineage.transport.auth.apiKey": api.token,
        "spark.openlineage.namespace": "night",
    }
    java = find_java()
    confs = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        spark_submit(java, [*confs, str(job), str(folder)]),
        env={**spark_environ(java), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def show(api: RunningApi, *words: str) -> Any:
    """Return the JSON output of a floe command, or None if it fails."""
    done = subprocess.run(
        [FLOE, *words, "--json"],
        env={"FLOE_CATALOG_URL": api.url, "PATH": ""},
        cwd=api.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def wait_for(answer: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    """Poll until an answer satisfies a condition: the listener sends asynchronously."""
    deadline = time.monotonic() + 60
    value = answer()
    while not (value and holds(value)) and time.monotonic() < deadline:
        time.sleep(0.5)
        value = answer()
    return value


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.timeout(600)
def test_the_spark_listener_sends_events_from_a_spark_session(
    api: RunningApi, tmp_path: Path
) -> None:
    run_spark(api, tmp_path, SPARK_JOB)
    wait_for(lambda: show(api, "datasets"), lambda datasets: "exposure" in json.dumps(datasets))
    graph = lineage(api, f"file/{tmp_path}/exposure")
    assert f"{tmp_path}/positions" in json.dumps(graph)


DATED_JOB = """
import sys
from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.appName("night").getOrCreate()
rows = spark.range(10).selectExpr("id", "id * 2 AS amount")
for day in ("2026-09-01", "2026-09-02", "2026-09-03"):
    rows.write.parquet(f"{folder}/fx/{day}")
    rows.write.csv(f"{folder}/exposure_{day.replace('-', '')}.csv")
    rows.write.parquet(f"{folder}/limits/business_date={day}/region=EU")
    rows.write.parquet(f"{folder}/limits/business_date={day}/region=US")
parts = rows.selectExpr("*", "date_add(date'2026-09-01', cast(id % 3 AS int)) AS business_date")
parts.write.partitionBy("business_date").parquet(f"{folder}/positions")
# The listener sends a start and no end for the inner run that lists the files of a read.
spark.read.parquet(f"{folder}/fx/*").write.parquet(f"{folder}/all")
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.timeout(600)
def test_dated_spark_writes_are_business_dates_of_one_dataset(
    api: RunningApi, tmp_path: Path
) -> None:
    run_spark(api, tmp_path, DATED_JOB)
    days = ["2026-09-01", "2026-09-02", "2026-09-03"]

    def versions(name: str, count: int) -> list[tuple[str, str]]:
        listed = wait_for(
            lambda: show(api, "versions", f"file/{tmp_path}/{name}"),
            lambda answer: len(answer["versions"]) >= count,
        )
        return sorted((row["business_date"], row["state"]) for row in listed["versions"])

    each_ready = [(day, "READY") for day in days]
    assert versions("fx", 3) == each_ready
    assert versions("exposure_{date}.csv", 3) == each_ready
    assert versions("limits", 6) == sorted([*each_ready, *each_ready])
    # The listener does not say which dates a partitionBy wrote: it is one version, of today.
    assert len(versions("positions", 1)) == 1
    # The application has ended, so each of its runs is SUCCESS or LOST.
    states = {run["status"] for run in show(api, "runs", "--limit", "100")}
    assert states == {"SUCCESS", "LOST"}
