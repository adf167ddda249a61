"""From a project to a backfill that can be made."""

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
from floe.orchestration.backfilling.driving import Drive, Launcher
from floe.orchestration.backfilling.history import HERE_TAG, last_undertaking
from floe.orchestration.backfilling.holding import holder_of
from floe.orchestration.backfilling.inline import InThisProcess
from floe.orchestration.backfilling.launching import ByDagster
from floe.orchestration.backfills import reach_of
from floe.orchestration.definitions import build_parts
from floe.orchestration.home import home_of, read_web_secret
from floe.orchestration.instances import open_instance
from floe.orchestration.loading import load
from floe.orchestration.observing import know, observe_run
from floe.orchestration.parts import Parts
from floe.spec.nearby import suggest
from floe.spec.orchestration import Backfill

CANCEL_SECONDS = 120.0


class UnknownBackfillError(FloeError):
    """A backfill was named that the project does not have."""

    exit_code = 2

    def __init__(self, name: str, known: Mapping[str, Backfill]) -> None:
        hint = suggest(name, known, "" if known else "Declare it under orchestration.backfills.")
        super().__init__(f"There is no backfill '{name}'. {hint}")


class NotCancelledError(FloeError):
    """A backfill goes on, though it was asked to stop."""

    def __init__(self, name: str, pid: int) -> None:
        super().__init__(
            f"The process {pid} still makes the backfill '{name}'. Ask again, or end the process."
        )


class NobodyCancelsError(FloeError):
    """A run is under way in a Dagster that is not up."""

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"The run {run_id} was begun by a Dagster that is not up. Start it with: floe up; "
            "it ends what has died, and this command cancels the rest."
        )


@dataclass(frozen=True)
class Opened:
    """A backfill of a project, with Dagster's database open."""

    name: str
    site: Site
    parts: Parts
    instance: DagsterInstance
    drive: Drive
    address: str | None
    """Where the Dagster of `floe up` is; None: nothing is up."""
    open_until_end: ExitStack
    """What a launcher opens and the end of the command closes."""

    @property
    def job(self) -> str:
        return self.site.spec.orchestration.backfills[self.name].job

    def launcher(self) -> Launcher:
        """Return what runs its batches: the Dagster that is up, else this process."""
        if self.address is not None:
            return self._by_dagster(self.address)
        job = self.parts.definitions().resolve_job_def(self.job)
        spec = self.site.spec
        knowledge = know(self.parts, spec.name, spec.timezone)
        workspace = self.open_until_end.enter_context(open_workspace(self.site))
        report = partial(observe_run, self.instance, workspace, knowledge)
        return InThisProcess(self.instance, job, report)

    def cancel(self) -> list[str]:
        """Stop the backfill, wherever it is made; return the runs that were canceled."""
        last = last_undertaking(self.instance, self.name)
        runs = last.under_way if last is not None else ()
        pid = holder_of(self.site.state_dir, self.name)
        if pid is not None:
            self._stop(pid)
        for run in runs:
            if HERE_TAG in run.tags:
                continue  # it ended with its process
            if self.address is None:
                raise NobodyCancelsError(run.run_id)
            launcher = self._by_dagster(self.address)
            launcher.terminate(run.run_id)
            launcher.wait(run.run_id)
        return [run.run_id for run in runs]

    def _by_dagster(self, address: str) -> ByDagster:
        secret = read_web_secret(home_of(self.site))
        return ByDagster(self.instance, address, secret, self.site.spec.name, self.job)

    def _stop(self, pid: int) -> None:
        os.kill(pid, signal.SIGINT)
        until = time.monotonic() + CANCEL_SECONDS
        while holder_of(self.site.state_dir, self.name) is not None:
            if time.monotonic() > until:
                raise NotCancelledError(self.name, pid)
            time.sleep(0.2)


@contextmanager
def opened(root: Path, name: str, address: str | None = None) -> Iterator[Opened]:
    """Load a project, and open Dagster's database for one of its backfills."""
    loading = load(root)
    site = loading.site
    declared = site.spec.orchestration.backfills
    if name not in declared:
        raise UnknownBackfillError(name, declared)
    parts = build_parts(loading)
    with open_instance(site) as instance, ExitStack() as open_until_end:
        drive = Drive(instance, name, declared[name], reach_of(loading, parts, name))
        yield Opened(name, site, parts, instance, drive, address, open_until_end)
