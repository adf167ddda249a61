"""A project under `floe up`: a legacy job's feed, and two processes that datasets start."""

import json
import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus

from floe.catalog.runs import RunRow, page_runs
from floe.catalog.version_queries import list_versions
from floe.catalog.versions import READY, SUPERSEDED
from floe.cli.context import open_project_catalog
from floe.execution.os_processes import start_of, wait_until
from floe.execution.workspace import load_site, open_workspace
from floe.orchestration.instance import open_instance
from floe.orchestration.launcher.workers import Workers
from floe.services.child_processes import members
from floe.services.state import Up, read_up
from floe.settings import ProjectPaths

FLOE = [sys.executable, "-m", "floe.cli"]
WAIT_SECONDS = 900
# Each row of the feed says how long it takes: Spark calls Java to sleep for that time.
FLOE_YAML = """
name: night
datasets:
  raw.trades:
    format: csv
    location: "landing/{business_date}/*.csv"
    schema:
      - {name: amount, type: double}
      - {name: wait, type: bigint}
  risk.totals: {}
  risk.report: {}
processes:
  totals:
    trigger: dataset
    inputs: {trades: raw.trades}
    outputs: {t: risk.totals}
    sql: >
      select count(*) as trades, sum(amount) as amount from trades
      where coalesce(reflect('java.lang.Thread', 'sleep', wait), '') <> 'x'
  report:
    trigger: dataset
    inputs: {totals: risk.totals}
    outputs: {r: risk.report}
    sql: select amount / trades as average from totals
"""
SAME = {
    DagsterRunStatus.SUCCESS: "SUCCESS",
    DagsterRunStatus.FAILURE: "FAILED",
}


@dataclass(frozen=True)
class Night:
    """The project, and the steps of a test."""

    root: Path

    @property
    def state(self) -> Up:
        up = read_up(ProjectPaths(self.root))
        assert up is not None
        return up

    def write(self) -> None:
        (self.root / "floe.yaml").write_text(FLOE_YAML)
        (self.root / "platform.yaml").write_text("compute: {default: {memory: 1g}}\n")

    def floe(self, *words: str) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FLOE_")}
        environ = {**kept, "FLOE_SPOOL": str(self.root / "spool")}
        done = subprocess.run(
            [*FLOE, *words],
            cwd=self.root,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def up(self) -> None:
        self.floe("up", "--detach", "--port", "0", "--dagster-port", "0")

    def deliver(self, day: str, amount: float = 10.0, *, seconds: float = 0) -> None:
        """Put a feed into its landing folder, as a legacy job does."""
        file = self.root / "landing" / day / "trades.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"amount,wait\n{amount},{int(seconds * 1000)}\n{amount},0\n")

    def register(self, day: str, version: str | None = None) -> None:
        """Report that the feed was delivered."""
        self.floe("register-dataset", "raw.trades", "--version", version or day, "--date", day,
                  "--require-delivery")  # fmt: skip

    def runs(self, process: str, day: str) -> list[RunRow]:
        """Return the runs of a process for a date from the catalog, oldest first."""
        with open_project_catalog(self.root) as catalog, catalog.reading() as session:
            listed = page_runs(session, 500)
        runs = [run for run in listed if run.process_key == f"floe/night/{process}"]
        return [run for run in reversed(runs) if str(run.business_date) == day]

    def versions(self, dataset: str, day: str) -> list[str]:
        """Return the tags of a date that are or were READY, oldest first."""
        with open_workspace(load_site(ProjectPaths(self.root))) as workspace:
            dataset_id = workspace.dataset_id(dataset)
            with workspace.catalog.reading() as session:
                listed = list_versions(session, dataset_id)
        versions = [version for version in reversed(listed) if str(version.business_date) == day]
        return [version.version_tag for version in versions if version.state in (READY, SUPERSEDED)]

    def wait_for_versions(self, dataset: str, day: str, count: int = 1) -> None:
        reached = wait_until(lambda: len(self.versions(dataset, day)) >= count, WAIT_SECONDS, 0.5)
        assert reached, self.describe()

    def wait_running(self, process: str, day: str) -> None:
        """Wait until a run is computing: Spark sleeps for it."""
        is_running = wait_until(
            lambda: any(run.status == "STARTED" for run in self.runs(process, day)),
            WAIT_SECONDS,
            0.2,
        )
        assert is_running, self.describe()

    def dagster_runs(self) -> list[DagsterRun]:
        with self._instance() as instance:
            return list(instance.get_runs())

    def check_states_agree(self) -> None:
        """Check that every run has ended, in the same state in Dagster and the catalog."""

        def agree() -> bool:
            runs = self.dagster_runs()
            with open_project_catalog(self.root) as catalog, catalog.reading() as session:
                known = {run.run_uuid: run.status for run in page_runs(session, 500)}
            ended = "STARTED" not in known.values()
            return ended and all(known.get(run.run_id) == SAME.get(run.status) for run in runs)

        assert wait_until(agree, WAIT_SECONDS, 0.5), self.describe()

    def kill(self, service: str) -> None:
        """kill -9 one service; the supervisor stops the processes that it started."""
        if service == "spark":
            pid = json.loads((self.root / ".floe/spark/server.json").read_text())["pid"]
        else:
            (pid,) = [status.pid for status in self.state.services if status.name == service]
        os.kill(pid, signal.SIGKILL)

    def kill_all(self) -> None:
        """kill -9 everything at once, also the processes of runs, like a power cut."""
        up = self.state
        workers = [worker.pid for worker in Workers.of_home(self.root / ".floe" / "dagster").all()]
        sessions = [service.pid for service in up.services if service.pid is not None]
        server = json.loads((self.root / ".floe/spark/server.json").read_text())["pid"]
        pids = {
            up.pid,
            server,
            *(pid for session in [*sessions, *workers] for pid in members(session)),
        }
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: not any(start_of(pid) for pid in pids), 30)

    def describe(self) -> str:
        """Describe all runs, for the message of a failed assertion."""
        runs = [f"{run.job_name} {run.status.value}" for run in self.dagster_runs()]
        with open_project_catalog(self.root) as catalog, catalog.reading() as session:
            known = [f"{run.process_key} {run.status}" for run in page_runs(session, 500)]
        return f"Dagster: {runs}; catalog: {known}; see {self.root / '.floe' / 'logs'}"

    def _instance(self) -> AbstractContextManager[DagsterInstance]:
        return open_instance(load_site(ProjectPaths(self.root)))
