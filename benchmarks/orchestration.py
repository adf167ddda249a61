"""Loading a project into Dagster and running dbt models, compared with dagster-dbt and dbt.

Loads are measured in CPU seconds of new processes: both sides only compute, so other load on
the machine matters little. The load from sources counts `floe compile` on our side and `dbt parse`
on the other. Runs are measured in elapsed time, in turns, on one warm Spark: all models and tests
of the demo, for one day, with bronze built before. The peer is dbtRunner in a warm process.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.many_models import floe_yaml, write_dbt
from benchmarks.result import Result
from floe.execution.spark.server import ensure_server, stop_server
from floe.execution.workspace import load_site
from floe.settings import ProjectPaths

if TYPE_CHECKING:
    from dagster import DagsterInstance, JobDefinition

SIZE = 1_000
LOAD_ROUNDS, COMPILE_ROUNDS, RUN_ROUNDS, RUN_WARM = 3, 3, 5, 2
ALLOWED_LOAD, ALLOWED_PROCESSES = 1.15, 1.5
ALLOWED_WARM = 1.25
DEMO = Path(__file__).parents[1] / "demo/data_engineering"
DAY, NEXT_DAY = "2026-01-05", "2026-01-06"

# What a code server does with definitions, after the imports of each side.
LOAD = """
repository = definitions().get_repository_def()
repository.load_all_definitions()
print(json.dumps([time.process_time() - imported, time.process_time()]))
"""
WITH_DAGSTER_DBT = (
    """
import json, sys, time
from pathlib import Path
from dagster import Definitions
from dagster_dbt import DbtCliResource, dbt_assets
folder = Path(sys.argv[1]) / "dbt"
dbt = DbtCliResource(project_dir=str(folder), profiles_dir=sys.argv[2], dbt_executable=sys.argv[3])
imported = time.process_time()
def definitions():
    @dbt_assets(manifest=folder / "target/manifest.json")
    def many(context, dbt: DbtCliResource):
        yield from dbt.cli(["build"], context=context).stream()
    return Definitions(assets=[many], resources={"dbt": dbt})
"""
    + LOAD
)
WITH_FLOE = (
    """
import json, sys, time
from floe.orchestration.definitions import FloeDefinitions
imported = time.process_time()
def definitions():
    return FloeDefinitions.from_compiled_artifacts(sys.argv[1])
"""
    + LOAD
)
RUNNER = """
import json, sys, time
from dbt.cli.main import dbtRunner
for line in sys.stdin:
    started = time.perf_counter()
    result = dbtRunner().invoke(json.loads(line))
    print(json.dumps([result.success, time.perf_counter() - started]), file=sys.stderr, flush=True)
"""


def run() -> Iterator[Result]:
    """Measure the loads, then the runs."""
    with tempfile.TemporaryDirectory(prefix="floe-bench-") as folder:
        yield from _loads(Path(folder))
    with tempfile.TemporaryDirectory(prefix="floe-bench-") as folder, opened(Path(folder)) as shop:
        yield from _runs(shop)


@dataclass(frozen=True)
class Loaded:
    """CPU seconds of a load: without the imports, and from the start of the process."""

    load: float
    whole: float


@dataclass(frozen=True)
class Sources:
    """The projects, and the CPU seconds in which each side compiled the first one."""

    models: Path
    both: Path
    compile: float
    parse: float


def _loads(folder: Path) -> Iterator[Result]:
    sources = _sources(folder)
    rounds = [
        tuple(
            _load(script, project)
            for script, project in (
                (WITH_DAGSTER_DBT, sources.models),
                (WITH_FLOE, sources.models),
                (WITH_FLOE, sources.both),
            )
        )
        for _ in range(1 + LOAD_ROUNDS)
    ]
    # The first run of each compiles its code.
    peer, ours, more = (_median(side) for side in zip(*rounds[1:], strict=True))
    yield Result(
        f"load of {SIZE:,} dbt models / dagster-dbt",
        ours.load / peer.load,
        ALLOWED_LOAD,
        note=f"{ours.load:.2f} s against {peer.load:.2f} s of CPU, imports on neither side",
    )
    from_sources = sources.compile + ours.whole, sources.parse + peer.whole
    yield Result(
        f"floe compile and load of {SIZE:,} dbt models / dbt parse and dagster-dbt",
        from_sources[0] / from_sources[1],
        ALLOWED_LOAD,
        note=f"{from_sources[0]:.2f} s against {from_sources[1]:.2f} s of CPU, new processes",
    )
    yield Result(
        f"load of {SIZE:,} dbt models + {SIZE:,} processes / dagster-dbt, models",
        more.load / peer.load,
        ALLOWED_PROCESSES,
        note=f"{more.load:.2f} s against {peer.load:.2f} s of CPU, imports on neither side",
    )


def _sources(folder: Path) -> Sources:
    """Write the project without and with processes; let both sides compile the first."""
    models, both = folder / "models", folder / "both"
    write_dbt(models / "dbt", SIZE)
    shutil.copytree(models, both)
    compiled: list[float] = []
    parsed: list[float] = []
    for project, processes in ((models, 0), (both, SIZE)):
        (project / "floe.yaml").write_text(floe_yaml(SIZE, processes))
        _cpu_seconds([_command("floe"), "compile"], project)
    parse = [_command("dbt"), "parse", "--project-dir", str(models / "dbt"),
             "--profiles-dir", str(models / ".floe/dbt")]  # fmt: skip
    for _ in range(COMPILE_ROUNDS):
        for seconds, command in ((parsed, parse), (compiled, [_command("floe"), "compile"])):
            shutil.rmtree(models / "dbt/target")
            seconds.append(_cpu_seconds(command, models))
    return Sources(models, both, statistics.median(compiled), statistics.median(parsed))


def _cpu_seconds(command: list[str], project: Path) -> float:
    """Run a command; return its CPU seconds, including its child processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=project, check=True, env=_environ(), stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _load(script: str, project: Path) -> Loaded:
    arguments = [str(project), str(project / ".floe/dbt"), _command("dbt")]
    cache = {"PYTHONPYCACHEPREFIX": str(project.parent / "compiled")}
    result = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=project,
        env={**_environ(), **cache},
        check=True,
        stdout=subprocess.PIPE,
    )
    return Loaded(*json.loads(result.stdout.splitlines()[-1]))


def _median(side: tuple[Loaded, ...]) -> Loaded:
    return Loaded(
        statistics.median(loaded.load for loaded in side),
        statistics.median(loaded.whole for loaded in side),
    )


class Shop:
    """The demo on a warm Spark, run by floe in Dagster and by dbtRunner."""

    def __init__(self, folder: Path, remote: str, instance: "DagsterInstance") -> None:
        from floe.orchestration.definitions import FloeDefinitions

        self._folder, self._instance = folder, instance
        self._environ = {**_environ(), "SPARK_REMOTE": remote}
        self._job: JobDefinition = FloeDefinitions.from_compiled_artifacts(folder).resolve_job_def(
            "shop"
        )
        self._runner: subprocess.Popen[str] | None = None

    def make_bronze(self) -> None:
        """Write the tables that dbt reads."""
        self._run("bronze")

    def by_floe(self) -> float:
        """Run the models as a run worker does; return the seconds."""
        return self._run("silver", "gold")

    def _run(self, *schemas: str) -> float:
        keys = [
            key for key in self._job.asset_layer.executable_asset_keys if key.path[0] in schemas
        ]
        started = time.perf_counter()
        done = self._job.execute_in_process(
            instance=self._instance,
            partition_key=DAY,
            asset_selection=keys,
            run_config={"loggers": {"console": {"config": {"log_level": "ERROR"}}}},
        )
        assert done.success
        return time.perf_counter() - started

    def by_warm_dbt(self) -> float:
        """Run the same by dbtRunner, in a warm process."""
        if self._runner is None:
            self._runner = subprocess.Popen(
                [sys.executable, "-c", RUNNER], env=self._environ, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
        runner = self._runner
        assert runner.stdin is not None
        assert runner.stderr is not None
        runner.stdin.write(json.dumps(self._arguments()) + "\n")
        runner.stdin.flush()
        # Python warns there as well.
        answer = next(line for line in runner.stderr if line.startswith(("[true", "[false")))
        success, seconds = json.loads(answer)
        assert success
        return float(seconds)

    def _arguments(self) -> list[str]:
        dbt = self._folder / "dbt"
        window = {"floe_start": f"{DAY}T00:00:00+00:00", "floe_end": f"{NEXT_DAY}T00:00:00+00:00"}
        return ["build", "--project-dir", str(dbt), "--profiles-dir",
                str(self._folder / ".floe/dbt"), "--log-path", str(self._folder / "logs"),
                "--vars", json.dumps(window)]  # fmt: skip

    def close(self) -> None:
        if self._runner is not None:
            self._runner.communicate()


@contextmanager
def opened(folder: Path) -> Iterator[Shop]:
    """Copy the demo, start its Spark, and stop everything at the end."""
    from floe.orchestration.instance import open_instance

    project = folder / "shop"
    made = shutil.ignore_patterns(".floe", "target", "logs", "__pycache__")
    shutil.copytree(DEMO, project, ignore=made)
    site = load_site(ProjectPaths(project), _environ())
    server = ensure_server(site)
    try:
        with open_instance(site) as instance:
            shop = Shop(project, server.url, instance)
            try:
                yield shop
            finally:
                shop.close()
    finally:
        stop_server(site)


def _runs(shop: Shop) -> Iterator[Result]:
    shop.make_bronze()
    rounds = [(shop.by_floe(), shop.by_warm_dbt()) for _ in range(RUN_WARM + RUN_ROUNDS)]
    floe, warm = (statistics.median(side) for side in zip(*rounds[RUN_WARM:], strict=True))
    yield Result(
        "demo through floe in Dagster / warm dbtRunner",
        floe / warm,
        ALLOWED_WARM,
        note=f"{floe:.2f} s against {warm:.2f} s",
    )


def _command(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _environ() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("FLOE_")}
    ours.pop("PYTHONDONTWRITEBYTECODE", None)
    return ours
