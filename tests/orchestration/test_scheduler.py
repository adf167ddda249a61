"""Schedules in Dagster's own scheduler, with its code server and a set clock."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus

# The scheduler's loop is not public. Called here, it can be told what time it is. Dagster's
# daemon is named first because the two import each other.
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import PythonFileTarget
from dagster._daemon import daemon as _daemon  # noqa: F401
from dagster._scheduler.scheduler import launch_scheduled_runs

from floe.spec.identity import BUSINESS_DATE_TAG
from tests.orchestration.projects import make_project

pytestmark = pytest.mark.slow

# Runs start directly, without the queue daemon, and no code server is left running.
AT_ONCE = {
    "run_coordinator": {
        "module": "dagster._core.run_coordinator",
        "class": "DefaultRunCoordinator",
    },
    "code_servers": {"wait_for_local_processes_on_shutdown": True},
}
PARTITION_TAG = "dagster/partition"
FLOE_YAML = """
timezone: Europe/Berlin
orchestration:
  asset_modules: [assets]
  partitions:
    daily: {type: time_window, start: "2026-01-01"}
  assets:
    "bronze.*": {partitions: daily}
    "silver.*": {partitions: daily, automation_condition: eager}
  jobs:
    nightly: {type: batch, selection: ["bronze.* or silver.*"]}
    report: {type: batch, selection: [audit]}
  schedules:
    night: {job: nightly, cron_schedule: "30 2 * * *"}
    morning: {job: report, cron_schedule: "0 6 * * *"}
    never: {job: report, cron_schedule: "* * * * *", enabled: false}
"""
ASSETS = """
from dagster import asset


@asset(key=["bronze", "orders"])
def orders() -> None: ...


@asset(key=["silver", "orders"], deps=[orders])
def silver() -> None: ...


@asset
def audit() -> None: ...
"""
DEFINITIONS = """
from floe import FloeDefinitions

definitions = FloeDefinitions.from_compiled_artifacts()
"""


class Scheduler:
    """Dagster's scheduler for a project."""

    def __init__(self, instance: DagsterInstance, context: WorkspaceProcessContext) -> None:
        self._instance = instance
        self._context = context

    def reach(self, moment: datetime) -> None:
        """Run the scheduler at a given time."""
        log = logging.getLogger("scheduler")
        for error in launch_scheduled_runs(self._context, log, moment, iteration_times={}):
            assert error is None, error

    def runs(self, job: str) -> list[DagsterRun]:
        """The finished runs of a job, oldest first."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            runs = [run for run in self._instance.get_runs() if run.job_name == job]
            if all(run.is_finished for run in runs):
                return runs[::-1]
            time.sleep(0.2)
        raise TimeoutError(f"the runs of {job} do not end")


@contextmanager
def scheduler_of(folder: Path, home: Path) -> Iterator[Scheduler]:
    home.mkdir()
    target = PythonFileTarget(
        python_file=str(folder / "definitions.py"),
        attribute=None,
        working_directory=str(folder),
        location_name="shop",
    )
    with (
        DagsterInstance.local_temp(str(home), overrides=AT_ONCE) as instance,
        WorkspaceProcessContext(instance, target) as context,
    ):
        yield Scheduler(instance, context)


def test_schedules_fire_once_on_the_day_when_clocks_go_forward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"assets.py": ASSETS, "definitions.py": DEFINITIONS}
    folder = make_project(tmp_path / "shop", FLOE_YAML, files)
    monkeypatch.setenv("FLOE_PROJECT", str(folder))
    with scheduler_of(folder, tmp_path / "home") as scheduler:
        scheduler.reach(datetime(2026, 3, 28, 12, tzinfo=UTC))
        # In Berlin 01:59 is followed by 03:00: there is no half past two.
        scheduler.reach(datetime(2026, 3, 29, 0, 59, tzinfo=UTC))
        assert scheduler.runs("nightly") == []
        for _ in range(2):
            scheduler.reach(datetime(2026, 3, 29, 1, 0, tzinfo=UTC))
        scheduler.reach(datetime(2026, 3, 29, 3, 59, tzinfo=UTC))
        assert scheduler.runs("report") == []
        for _ in range(2):
            scheduler.reach(datetime(2026, 3, 29, 4, 0, tzinfo=UTC))
        (night,), (morning,) = scheduler.runs("nightly"), scheduler.runs("report")

    assert night.status == morning.status == DagsterRunStatus.SUCCESS
    assert night.tags[PARTITION_TAG] == morning.tags[BUSINESS_DATE_TAG] == "2026-03-29"
    # silver.orders is made by itself.
    assert night.asset_selection == {AssetKey(["bronze", "orders"])}
