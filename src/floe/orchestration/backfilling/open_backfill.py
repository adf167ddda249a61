"""Open a backfill: its definitions, Dagster's database and a launcher."""

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dagster import DagsterInstance

from floe.errors import FloeError
from floe.execution.site import Site
from floe.execution.workspace import open_workspace
from floe.orchestration.backfilling.dagster_launcher import DagsterLauncher
from floe.orchestration.backfilling.driver import BackfillDriver, Launcher
from floe.orchestration.backfilling.history import HERE_TAG, last_execution
from floe.orchestration.backfilling.in_process_launcher import InProcessLauncher
from floe.orchestration.backfilling.lock import lock_holder
from floe.orchestration.backfills import scope_of
from floe.orchestration.definitions import build_parts
from floe.orchestration.home import home_of, read_web_secret
from floe.orchestration.instance import open_instance
from floe.orchestration.loading import Parts, load
from floe.orchestration.observing import index_assets, observe_run
from floe.spec.nearby import suggest
from floe.spec.orchestration import Backfill

CANCEL_SECONDS = 120.0


class UnknownBackfillError(FloeError):
    """The project has no backfill of this name."""

    exit_code = 2

    def __init__(self, name: str, known: Mapping[str, Backfill]) -> None:
        hint = suggest(name, known, "" if known else "Declare it under orchestration.backfills.")
        super().__init__(f"There is no backfill '{name}'. {hint}")


class NotCancelledError(FloeError):
    """A backfill did not stop in time."""

    def __init__(self, name: str, pid: int) -> None:
        super().__init__(
            f"The process {pid} is still running the backfill '{name}'. Try again, or kill it."
        )


class DagsterNotRunningError(FloeError):
    """A run is in progress, but its Dagster is not running."""

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"The run {run_id} was started by a Dagster that is not running. Start it with: "
            "floe up; it ends dead runs. Then repeat this command to cancel the others."
        )


@dataclass(frozen=True)
class OpenBackfill:
    """A backfill with Dagster's database open."""

    name: str
    site: Site
    parts: Parts
    instance: DagsterInstance
    driver: BackfillDriver
    address: str | None
    """The address of the Dagster of `floe up`; None if it is not running."""
    open_until_end: ExitStack
    """Closes what a launcher opened, at the end of the command."""

    @property
    def job(self) -> str:
        return self.site.spec.orchestration.backfills[self.name].job

    def launcher(self) -> Launcher:
        """Return the launcher: the running Dagster, else this process."""
        if self.address is not None:
            return self._by_dagster(self.address)
        job = self.parts.definitions().resolve_job_def(self.job)
        spec = self.site.spec
        index = index_assets(self.parts, spec.name, spec.timezone)
        workspace = self.open_until_end.enter_context(open_workspace(self.site))
        report = partial(observe_run, self.instance, workspace, index)
        return InProcessLauncher(self.instance, job, report)

    def cancel(self) -> list[str]:
        """Stop the backfill, wherever it runs; return the canceled runs."""
        last = last_execution(self.instance, self.name)
        runs = last.under_way if last is not None else ()
        pid = lock_holder(self.site.state_dir, self.name)
        if pid is not None:
            self._stop(pid)
        for run in runs:
            if HERE_TAG in run.tags:
                continue  # it ended with its process
            if self.address is None:
                raise DagsterNotRunningError(run.run_id)
            launcher = self._by_dagster(self.address)
            launcher.terminate(run.run_id)
            launcher.wait(run.run_id)
        return [run.run_id for run in runs]

    def _by_dagster(self, address: str) -> DagsterLauncher:
        secret = read_web_secret(home_of(self.site))
        return DagsterLauncher(self.instance, address, secret, self.site.spec.name, self.job)

    def _stop(self, pid: int) -> None:
        os.kill(pid, signal.SIGINT)
        until = time.monotonic() + CANCEL_SECONDS
        while lock_holder(self.site.state_dir, self.name) is not None:
            if time.monotonic() > until:
                raise NotCancelledError(self.name, pid)
            time.sleep(0.2)


@contextmanager
def open_backfill(root: Path, name: str, address: str | None = None) -> Iterator[OpenBackfill]:
    """Load a project, and open Dagster's database for one of its backfills."""
    loading = load(root)
    site = loading.site
    declared = site.spec.orchestration.backfills
    if name not in declared:
        raise UnknownBackfillError(name, declared)
    parts = build_parts(loading)
    with open_instance(site) as instance, ExitStack() as open_until_end:
        driver = BackfillDriver(instance, name, declared[name], scope_of(loading, parts, name))
        yield OpenBackfill(name, site, parts, instance, driver, address, open_until_end)
