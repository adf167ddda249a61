"""A warm process with a small project, a Dagster home, and runs to launch."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, Definitions
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.launcher import LaunchRunContext
from dagster._core.origin import JobPythonOrigin

from floe.execution.os_processes import wait_until
from floe.execution.workspace import load_site
from floe.orchestration.home import (
    MODULE_VARIABLE,
    SOCKET_VARIABLE,
    dagster_environ,
    home_of,
    write_home,
)
from floe.orchestration.launcher.run_launcher import WarmRunLauncher
from floe.orchestration.launcher.workers import Workers
from floe.services.dagster_services import ONE_THREAD
from floe.services.service import answers_socket
from floe.settings import find_project

MODULE = "night_definitions"
DEFINITIONS = """
import os, signal, time
from pathlib import Path
from dagster import Definitions, in_process_executor, job, op

HERE = Path(__file__).parent

@op
def note():
    (HERE / "noted").write_text(f"{os.getpid()} {os.getppid()} {os.getsid(0)} FIRST")

@op
def wait_long():
    (HERE / "noted").write_text(str(os.getpid()))
    time.sleep(600)

@op
def be_deaf():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    (HERE / "noted").write_text(str(os.getpid()))
    time.sleep(600)

@op
def die():
    os.kill(os.getpid(), signal.SIGKILL)

@op
def leave():
    os._exit(0)

def job_of(step):
    @job(name=f"{step.name}_job", executor_def=in_process_executor)
    def made():
        step()
    return made

definitions = Definitions(jobs=[job_of(one) for one in (note, wait_long, be_deaf, die, leave)])
"""
WAIT_SECONDS = 300


@dataclass
class Night:
    """A project whose runs are launched through a warm process."""

    root: Path
    socket: Path
    instance: DagsterInstance
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def launcher(self) -> WarmRunLauncher:
        result = self.instance.run_launcher
        assert isinstance(result, WarmRunLauncher)
        return result

    @property
    def workers(self) -> Workers:
        return Workers.of_home(Path(self.instance.root_directory))

    @property
    def log(self) -> str:
        return (self.root / "workers.log").read_text()

    def start(self) -> None:
        with (self.root / "workers.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "floe.orchestration.launcher.warm_process"],
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        assert wait_until(lambda: answers_socket(self.socket)().healthy, WAIT_SECONDS), self.log

    def create(self, step: str) -> DagsterRun:
        """Create a run without launching it."""
        # Not imported here: the jobs are loaded by another process.
        pointer = ReconstructableRepository.for_module(MODULE, "definitions", str(self.root))
        origin = JobPythonOrigin(f"{step}_job", pointer.get_python_origin())
        scope: dict[str, object] = {"__file__": str(self.root / f"{MODULE}.py")}
        exec(DEFINITIONS, scope)
        definitions = scope["definitions"]
        assert isinstance(definitions, Definitions)
        return self.instance.create_run_for_job(
            definitions.get_job_def(f"{step}_job"),
            status=DagsterRunStatus.STARTING,
            job_code_origin=origin,
        )

    def launch(self, step: str) -> DagsterRun:
        run = self.create(step)
        self.launcher.launch_run(LaunchRunContext(run, None))
        return run

    def status(self, run: DagsterRun) -> DagsterRunStatus:
        result = self.instance.get_run_by_id(run.run_id)
        assert result is not None
        return result.status

    def wait(self, run: DagsterRun, status: DagsterRunStatus) -> None:
        reached = wait_until(lambda: self.status(run) == status, WAIT_SECONDS, 0.1)
        assert reached, (self.status(run), self.log)

    def noted(self) -> list[str]:
        """Wait for the text that a step writes, and return its words."""
        file = self.root / "noted"
        assert wait_until(lambda: file.exists() and file.read_text() != "", WAIT_SECONDS), self.log
        return file.read_text().split()

    def messages(self, run: DagsterRun) -> str:
        return "\n".join(entry.message for entry in self.instance.all_logs(run.run_id))


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Night]:
    (tmp_path / "floe.yaml").write_text("name: night\n")
    (tmp_path / f"{MODULE}.py").write_text(DEFINITIONS)
    site = load_site(find_project(tmp_path))
    write_home(site)
    runtime = tempfile.TemporaryDirectory(prefix="floe-")
    socket = Path(runtime.name) / "launcher.sock"
    environ = {**dagster_environ(site), **ONE_THREAD}
    for name, value in {**environ, SOCKET_VARIABLE: str(socket), MODULE_VARIABLE: MODULE}.items():
        monkeypatch.setenv(name, value)
    with runtime, DagsterInstance.from_config(str(home_of(site))) as instance:
        item = Night(tmp_path, socket, instance)
        try:
            yield item
        finally:
            item.workers.kill_all()
            if item.process is not None:
                item.process.kill()
                item.process.wait()


@pytest.fixture
def warm(night: Night) -> Night:
    """The project with the warm process running."""
    night.start()
    return night
