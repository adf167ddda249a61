"""A project under `floe up`: an old job's feed, and two processes that datasets start."""

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
from floe.catalog.versions import READY, SUPERSEDED, list_versions
from floe.cli.context import open_project_catalog
from floe.execution.spark.processes import start_of, wait_until
from floe.execution.workspace import load_site, open_workspace
from floe.orchestration.instances import open_instance
from floe.orchestration.launcher.workers import Workers
from floe.services.children import members
from floe.services.state import Up, read_up
from floe.settings import ProjectPaths

FLOE = [sys.executable, "-m", "floe.cli"]
WAIT_SECONDS = 900
# How long a row of the feed takes is the feed's to say: Spark calls Java to sleep for it.
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
    """The project, and what a test does with it."""

    root: Path

    @property
    def standing(self) -> Up:
        found = read_up(ProjectPaths(self.root))
        assert found is not None
        return found

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
        """Put a feed where it is looked for, as an old job does."""
        file = self.root / "landing" / day / "trades.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"amount,wait\n{amount},{int(seconds * 1000)}\n{amount},0\n")

    def register(self, day: str, version: str | None = None) -> None:
        """Say that it is there."""
        self.floe("register-dataset", "raw.trades", "--version", version or day, "--date", day,
                  "--require-delivery")  # fmt: skip

    def runs(self, process: str, day: str) -> list[RunRow]:
        """The runs of a process for a date as the catalog has them, the oldest first."""
        with open_project_catalog(self.root) as catalog, catalog.reading() as session:
            found = page_runs(session, 500)
        mine = [one for one in found if one.process_key == f"floe/night/{process}"]
        return [one for one in reversed(mine) if str(one.business_date) == day]

    def made(self, dataset: str, day: str) -> list[str]:
        """The versions of a date that could ever be read, the oldest first."""
        with open_workspace(load_site(ProjectPaths(self.root))) as workspace:
            number = workspace.dataset_id(dataset)
            with workspace.catalog.reading() as session:
                found = list_versions(session, number)
        mine = [one for one in reversed(found) if str(one.business_date) == day]
        return [one.version_tag for one in mine if one.state in (READY, SUPERSEDED)]

    def wait_made(self, dataset: str, day: str, count: int = 1) -> None:
        reached = wait_until(lambda: len(self.made(dataset, day)) >= count, WAIT_SECONDS, 0.5)
        assert reached, self.story()

    def wait_running(self, process: str, day: str) -> None:
        """Wait until a run is in the middle of its work: Spark sleeps for it."""
        begun = wait_until(
            lambda: any(one.status == "STARTED" for one in self.runs(process, day)),
            WAIT_SECONDS,
            0.2,
        )
        assert begun, self.story()

    def dagster_runs(self) -> list[DagsterRun]:
        with self._instance() as instance:
            return list(instance.get_runs())

    def check_states_agree(self) -> None:
        """Every run has ended, for Dagster and for the catalog in the same way."""

        def agree() -> bool:
            runs = self.dagster_runs()
            with open_project_catalog(self.root) as catalog, catalog.reading() as session:
                known = {one.run_uuid: one.status for one in page_runs(session, 500)}
            ended = "STARTED" not in known.values()
            return ended and all(known.get(one.run_id) == SAME.get(one.status) for one in runs)

        assert wait_until(agree, WAIT_SECONDS, 0.5), self.story()

    def kill(self, service: str) -> None:
        """kill -9 of a service alone; what it had started is the supervisor's to end."""
        if service == "spark":
            pid = json.loads((self.root / ".floe/spark/server.json").read_text())["pid"]
        else:
            (pid,) = [one.pid for one in self.standing.services if one.name == service]
        os.kill(pid, signal.SIGKILL)

    def kill_all(self) -> None:
        """kill -9 of everything at once, the processes of runs too: as if the power was cut."""
        up = self.standing
        workers = [one.pid for one in Workers.of_home(self.root / ".floe" / "dagster").all()]
        sessions = [one.pid for one in up.services if one.pid is not None]
        server = json.loads((self.root / ".floe/spark/server.json").read_text())["pid"]
        pids = {up.pid, server, *(pid for one in [*sessions, *workers] for pid in members(one))}
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: not any(start_of(pid) for pid in pids), 30)

    def story(self) -> str:
        """What there is to know when something does not happen."""
        runs = [f"{one.job_name} {one.status.value}" for one in self.dagster_runs()]
        with open_project_catalog(self.root) as catalog, catalog.reading() as session:
            known = [f"{one.process_key} {one.status}" for one in page_runs(session, 500)]
        return f"Dagster: {runs}; catalog: {known}; see {self.root / '.floe' / 'logs'}"

    def _instance(self) -> AbstractContextManager[DagsterInstance]:
        return open_instance(load_site(ProjectPaths(self.root)))
