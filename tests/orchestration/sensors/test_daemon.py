"""Sensors in Dagster's own sensor loop, with its code server, cursors and runs."""

import logging
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dagster import DagsterInstance
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import GrpcServerTarget
from dagster._daemon import daemon as _daemon  # noqa: F401

# The loop is not public. The test calls it directly to control when sensors run.
from dagster._daemon.sensor import execute_sensor_iteration

from tests.notify.servers import web_server
from tests.orchestration.sensors.shop import make_shop
from tools.processes import running

pytestmark = pytest.mark.slow

# Runs start directly, without the queue daemon.
AT_ONCE = {
    "run_coordinator": {
        "module": "dagster._core.run_coordinator",
        "class": "DefaultRunCoordinator",
    }
}
SENSORS = """
arrival: {type: file_watcher, job: make_orders, path: landing, existing: process,
          poll_interval_seconds: 1}
made: {type: asset_sensor, job: make_broken, watched_assets: [bronze.orders],
  poll_interval_seconds: 1}
failed: {type: run_status, notify: [ops], poll_interval_seconds: 1}
asleep: {type: file_watcher, job: make_revenue, path: landing, enabled: false,
  poll_interval_seconds: 1}
"""
DEFINITIONS = """
    from floe import FloeDefinitions

    definitions = FloeDefinitions.from_compiled_artifacts()
"""


@contextmanager
def code_server(folder: Path) -> Iterator[GrpcServerTarget]:
    """Serve a project with Dagster's code server."""
    port = free_port()
    loaded = ["--python-file", str(folder / "definitions.py"), "--working-directory", str(folder)]
    command = [sys.executable, "-m", "dagster", "api", "grpc", "--port", str(port), *loaded]
    with running([*command, "--host", "127.0.0.1"]):
        wait_until(lambda: listens(port))
        yield GrpcServerTarget(host="127.0.0.1", port=port, socket=None, location_name="shop")


@contextmanager
def sensor_loop(folder: Path, home: Path) -> Iterator[tuple[DagsterInstance, Callable[[], None]]]:
    """Load a project as Dagster's daemon does; a call evaluates every due sensor."""
    log = logging.getLogger("sensors")
    with (
        code_server(folder) as target,
        DagsterInstance.local_temp(str(home), overrides=AT_ONCE) as instance,
        WorkspaceProcessContext(instance, target) as context,
    ):

        def look() -> None:
            for error in execute_sensor_iteration(context, log, None, None):
                assert error is None, error
            time.sleep(1.1)

        yield instance, look


def listens(port: int) -> bool:
    with socket.socket() as item:
        return item.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as item:
        item.bind(("127.0.0.1", 0))
        return int(item.getsockname()[1])


def wait_until(holds: Callable[[], bool], look: Callable[[], None] = lambda: None) -> None:
    """Evaluate sensors until a condition holds."""
    deadline = time.monotonic() + 200
    while not holds():
        assert time.monotonic() < deadline
        look()
        time.sleep(0.1)


def ended(instance: DagsterInstance) -> set[str]:
    """The jobs with a finished run."""
    return {run.job_name for run in instance.get_runs() if run.is_finished}


def counted(instance: DagsterInstance) -> dict[str, int]:
    """The number of runs per job."""
    return dict(Counter(run.job_name for run in instance.get_runs()))


def test_a_chain_of_sensors_runs_once_even_across_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with web_server() as hook:
        platform = f'notifications: {{ops: {{type: webhook, url: "{hook.url}"}}}}'
        folder = make_shop(
            tmp_path / "shop", SENSORS, {"definitions.py": DEFINITIONS}, platform=platform
        )
        monkeypatch.setenv("FLOE_PROJECT", str(folder))
        (folder / "landing").mkdir()
        with sensor_loop(folder, home) as (instance, look):
            look()
            (folder / "landing" / "orders.csv").write_text("1")
            wait_until(lambda: ended(instance) >= {"make_orders", "make_broken"}, look)
        with sensor_loop(folder, home) as (instance, look):
            wait_until(lambda: bool(hook.posted), look)
            for _ in range(3):
                look()
            assert counted(instance) == {"make_orders": 1, "make_broken": 1}
    [posted] = hook.posted
    assert posted.body["title"] == "The job make_broken failed"
    assert "Error: ValueError: no rates for 2026-09-01" in posted.body["body"]
