"""A small shop with sensors, and a daemon that evaluates them step by step."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from dagster import (
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
    DagsterRun,
    ExecuteInProcessResult,
    RepositoryDefinition,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    build_sensor_context,
)

from floe.orchestration.assets import build_assets
from floe.orchestration.jobs import build_jobs
from floe.orchestration.loading import Parts, load
from floe.orchestration.partitions import build_partitions
from floe.orchestration.sensors import build_sensors
from tests.orchestration.projects import make_project

RUN_KEY, SENSOR = "dagster/run_key", "dagster/sensor_name"
ASSETS = """
    from dagster import DailyPartitionsDefinition, asset

    DAILY = DailyPartitionsDefinition("2026-01-01", end_offset=1)


    @asset(key=["bronze", "orders"])
    def orders() -> None: ...


    @asset(key=["bronze", "customers"])
    def customers() -> None: ...


    @asset(key=["gold", "revenue"])
    def revenue() -> None: ...


    @asset(key=["daily", "orders"], partitions_def=DAILY)
    def daily_orders() -> None: ...


    @asset(key=["daily", "customers"], partitions_def=DAILY)
    def daily_customers() -> None: ...


    @asset(key=["daily", "revenue"], partitions_def=DAILY)
    def daily_revenue() -> None: ...


    @asset(key=["gold", "broken"])
    def broken() -> None:
        raise ValueError("no rates for 2026-09-01\\nin any file")
"""
JOBS = """
        make_orders: {type: batch, selection: [bronze.orders]}
        make_all: {type: batch, selection: [bronze.*, gold.revenue]}
        make_revenue: {type: batch, selection: [gold.revenue]}
        make_daily: {type: batch, selection: [daily.revenue]}
        make_broken: {type: batch, selection: [gold.broken]}
"""


def make_shop(
    folder: Path, sensors: str, files: Mapping[str, str] | None = None, platform: str = ""
) -> Path:
    """Write the project of the shop with these sensors."""
    lines = "\n".join(f"        {line}" for line in sensors.strip().splitlines())
    declared = f"""
    orchestration:
      asset_modules: [shop]
      jobs:{JOBS.rstrip()}
      sensors:
{lines}
    """
    own = {"shop.py": ASSETS, **({"platform.yaml": platform} if platform else {})}
    return make_project(folder, declared, {**own, **(files or {})})


def build_shop(folder: Path, environ: Mapping[str, str] | None = None) -> Parts:
    """Load the parts of the shop that sensors need."""
    loading = load(folder, environ)
    builders = (build_partitions, build_assets, build_jobs, build_sensors)
    return reduce(lambda parts, build: build(loading, parts), builders, Parts())


@dataclass
class Look:
    """The result of an evaluation."""

    requests: list[RunRequest]
    skipped: str | None

    @property
    def partitions(self) -> list[str | None]:
        return [request.partition_key for request in self.requests]


@dataclass
class Daemon:
    """Evaluates sensors on request, and starts one run per run key."""

    parts: Parts
    instance: DagsterInstance
    cursors: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.repository: RepositoryDefinition = self.parts.definitions().get_repository_def()

    def sensor(self, name: str) -> SensorDefinition:
        return self.repository.get_sensor_def(name)

    def look(self, name: str, *, dies: bool = False) -> Look:
        """Evaluate a sensor once; with `dies` the cursor is not stored."""
        with build_sensor_context(
            instance=self.instance,
            cursor=self.cursors.get(name),
            repository_def=self.repository,
            sensor_name=name,
        ) as context:
            result = self.sensor(name).evaluate_tick(context)
        if not dies:
            self.cursors[name] = result.cursor
        return Look(list(result.run_requests or ()), result.skip_message)

    def tick(self, name: str, *, dies: bool = False) -> list[DagsterRun]:
        """Evaluate a sensor, start the requested runs, and return them."""
        look = self.look(name, dies=dies)
        return [run for request in look.requests for run in self._start(name, request)]

    def run(self, job: str, **more: Any) -> ExecuteInProcessResult:
        """Run a job manually."""
        result = self.repository.get_job(job)
        return result.execute_in_process(instance=self.instance, raise_on_error=False, **more)

    def report(self, dotted: str, partition: str | None = None) -> None:
        """Report an external materialization."""
        result = AssetMaterialization(AssetKey(dotted.split(".")), partition=partition)
        self.instance.report_runless_asset_event(result)

    def _start(self, name: str, request: RunRequest) -> Iterator[DagsterRun]:
        tags = {**request.tags, SENSOR: name}
        if request.run_key is not None:
            tags[RUN_KEY] = request.run_key
            known = RunsFilter(tags={RUN_KEY: request.run_key, SENSOR: name})
            if self.instance.get_runs(known):
                return
        job = request.job_name or self.sensor(name).job.name
        yield self.run(job, tags=tags, partition_key=request.partition_key).dagster_run


@contextmanager
def open_shop(
    folder: Path,
    sensors: str,
    *,
    environ: Mapping[str, str] | None = None,
    on_disk: bool = False,
    **more: Any,
) -> Iterator[Daemon]:
    """Write the shop, and open it with a Dagster instance in memory or on disk."""
    parts = build_shop(make_shop(folder, sensors, **more), environ)
    with _instance(folder / "dagster_home", on_disk) as instance:
        yield Daemon(parts, instance)


def _instance(home: Path, on_disk: bool) -> DagsterInstance:
    if not on_disk:
        return DagsterInstance.ephemeral()
    home.mkdir()
    return DagsterInstance.local_temp(str(home))


def restarted(daemon: Daemon, folder: Path) -> Daemon:
    """Load the project again, as after a restart: only cursors and the instance remain."""
    return Daemon(build_shop(folder), daemon.instance, dict(daemon.cursors))
