"""The warm process: it has the project loaded and forks itself for each run.

Start it with `python -m floe.orchestration.launcher.warm_process`. It always has one thread: the
fork of a process with several would inherit locks that nobody releases. Run processes are recorded
in files, so that it can restart itself when the project has changed, and another one can take over
when it is killed.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from traceback import format_exception_only, print_exc
from types import FrameType
from typing import Any, NoReturn

from floe.execution.os_processes import start_of
from floe.orchestration.home import MODULE_VARIABLE, SOCKET_VARIABLE
from floe.orchestration.launcher.workers import Worker, Workers, listen, receive_line
from floe.settings import ProjectPaths

GRACE_SECONDS = 20.0
"""How long a run may take to stop when it is asked to."""
GRACE_VARIABLE = "FLOE_RUN_GRACE_SECONDS"
"""Overrides GRACE_SECONDS."""
READ_SECONDS = 5.0
TICK_SECONDS = 0.5
TASKS = Path("/proc/self/task")

FileStamps = dict[Path, tuple[int, int]]
"""Modification time and size of each file."""
SOURCE_SUFFIXES = (".py", ".sql", ".yaml", ".yml")
# Folders with generated files: dbt writes into target whenever it runs.
GENERATED = frozenset({"__pycache__", "node_modules", "target", "dbt_packages", "logs"})


def stamp_sources(root: Path) -> FileStamps:
    """Return the stamps of all source files of a project.

    Not only of loaded files, because a module that could not be loaded is the one that is fixed
    next.
    """
    sources: list[Path] = []
    for folder, folders, files in os.walk(root):
        folders[:] = [
            name for name in folders if name not in GENERATED and not name.startswith(".")
        ]
        sources += [Path(folder, name) for name in files if name.endswith(SOURCE_SUFFIXES)]
    return stamp_files(sources)


def stamp_files(files: Iterable[Path]) -> FileStamps:
    """Return the stamps of files; missing files are left out."""
    stamps: FileStamps = {}
    for file in files:
        with suppress(OSError):
            status = file.stat()
            stamps[file] = (status.st_mtime_ns, status.st_size)
    return stamps


class WarmProcess:
    """The process that has the project loaded."""

    def __init__(self, paths: ProjectPaths, module: str, listener: socket.socket) -> None:
        self._module, self._listener, self._paths = module, listener, paths
        self._workers = Workers.of_home(paths.state_dir / "dagster")
        self._stopping = False
        # Before loading, so that no change is missed. Loading may write the compiled file.
        before = stamp_sources(paths.root)
        self._load_error = self._load()
        self._stamps = before | stamp_files([paths.compiled])
        gc.collect()
        # A garbage collection over the loaded modules would copy their memory for every run.
        gc.freeze()

    def serve(self) -> None:
        """Start runs until a signal stops this process; then stop them too."""
        wakeup_reader, wakeup_writer = socket.socketpair()
        for end in (wakeup_reader, wakeup_writer):
            end.setblocking(False)
        signal.set_wakeup_fd(wakeup_writer.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda signum, frame: None)
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, self._stop)
        if self._load_error:
            self._log(f"cannot load {self._module}: {self._load_error}")
        else:
            self._log(f"ready with {self._module}")
        while not self._stopping:
            ready, _, _ = select.select([self._listener, wakeup_reader], [], [], TICK_SECONDS)
            if wakeup_reader in ready:
                wakeup_reader.recv(4096)
            self._reap_children()
            self._check_workers()
            if self._listener in ready:
                self._restart_if_changed()
                self._respond()
        self._stop_runs()

    def _stop(self, signum: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _load(self) -> str:
        """Load the project; return the error if it cannot be loaded."""
        from dagster import DagsterInstance, Definitions

        # Import everything that a run will import, including its storage, which is closed again.
        from floe.orchestration.launcher import run_launcher  # noqa: F401

        with DagsterInstance.get() as instance:
            instance.get_runs(limit=1)
        try:
            module = import_module(self._module)
            for value in list(vars(module).values()):
                if isinstance(value, Definitions):
                    value.get_repository_def().load_all_definitions()
        # The user's code may raise anything. Dagster's default launcher then starts the runs, and
        # shows in Dagster what is wrong.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            print_exc()
            return format_exception_only(error)[-1].strip()
        return ""

    def _restart_if_changed(self) -> None:
        """Restart as the same process if the project has changed; open requests wait."""
        stamps = stamp_sources(self._paths.root) | stamp_files([self._paths.compiled])
        if stamps == self._stamps:
            return
        self._log("the project has changed: loading it again")
        signal.set_wakeup_fd(-1)
        self._listener.set_inheritable(True)
        command = [sys.executable, "-m", __spec__.name, str(self._listener.fileno())]
        os.execv(sys.executable, command)  # noqa: S606

    def _respond(self) -> None:
        connection, _ = self._listener.accept()
        with connection, suppress(OSError, ValueError, LookupError):
            connection.settimeout(READ_SECONDS)
            request = json.loads(receive_line(connection))
            handlers = {"launch": self._launch, "terminate": self._terminate}
            response = handlers[request["do"]](connection, request)
            connection.sendall(json.dumps(response).encode() + b"\n")

    def _launch(self, connection: socket.socket, request: dict[str, Any]) -> dict[str, Any]:
        if refusal := self._refusal(request):
            return {"refused": refusal}
        run_id, ref = str(request["run_id"]), str(request["instance"])
        gate, open_gate = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(open_gate)
            connection.close()
            self._become_run(run_id, ref, gate)
        os.close(gate)
        worker = Worker(run_id, pid, start_of(pid) or "", ref)
        # Recorded before it starts: if this process is killed in between, the gate closes unopened.
        self._workers.record(worker)
        os.write(open_gate, b"x")
        os.close(open_gate)
        return {"pid": pid}

    def _refusal(self, request: dict[str, Any]) -> str:
        if self._load_error:
            return f"the project does not load: {self._load_error}"
        if request["module"] != self._module:
            return f"it has loaded {self._module}, not {request['module']}"
        count = len(list(TASKS.iterdir())) if TASKS.is_dir() else threading.active_count()
        if count > 1:
            return f"loading the project has started {count - 1} threads, so it cannot be forked"
        return ""

    def _become_run(self, run_id: str, ref: str, gate: int) -> NoReturn:
        """Turn this fork into the process of a run; exit when the run ends."""
        code = 1
        try:
            os.setsid()
            self._listener.close()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if os.read(gate, 1):
                from floe.orchestration.launcher.run_launcher import execute_run, reseed_numpy

                reseed_numpy()
                code = execute_run(run_id, ref)
        except BaseException:
            print_exc()
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Skip the exit handlers of the process that was forked.
            os._exit(code)

    def _terminate(self, connection: socket.socket, request: dict[str, Any]) -> dict[str, Any]:
        worker = self._workers.find(str(request["run_id"]))
        if worker is None or not worker.alive:
            return {"refused": "no such process"}
        self._interrupt(worker)
        return {"pid": worker.pid}

    def _interrupt(self, worker: Worker) -> None:
        worker.interrupt()
        grace = float(os.environ.get(GRACE_VARIABLE, GRACE_SECONDS))
        kill_at = worker.kill_at or time.monotonic() + grace
        self._workers.record(replace(worker, kill_at=kill_at))

    def _check_workers(self) -> None:
        """Kill runs that did not stop in time; report dead runs of an earlier process."""
        for worker in self._workers.all():
            if worker.kill_at is not None and time.monotonic() > worker.kill_at:
                self._log(f"run {worker.run_id} did not stop in time: killing it")
                worker.kill()
            if not worker.alive and not _is_child(worker.pid):
                self._close_worker(worker, None)

    def _reap_children(self) -> bool:
        """Close the runs whose process has exited; return whether others are left."""
        try:
            while child := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                # Kill what it has left behind before it is reaped: until then nobody else can
                # have its pid.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.si_pid, signal.SIGKILL)
                _, status = os.waitpid(child.si_pid, 0)
                for worker in self._workers.all():
                    if worker.pid == child.si_pid:
                        self._close_worker(worker, os.waitstatus_to_exitcode(status))
        except ChildProcessError:
            return False
        return True

    def _close_worker(self, worker: Worker, code: int | None) -> None:
        """Delete the record of a run; a fork reports to Dagster if the run's process died."""
        self._workers.remove(worker.run_id)
        if code == 0:
            return
        self._log(f"the process of run {worker.run_id} has died ({code})")
        if os.fork() == 0:
            try:
                signal.set_wakeup_fd(-1)
                self._listener.close()
                from floe.orchestration.launcher.run_launcher import report_death

                report_death(worker.run_id, worker.instance, code)
            except BaseException:
                print_exc()
                raise
            finally:
                sys.stderr.flush()
                os._exit(0)

    def _stop_runs(self) -> None:
        for worker in self._workers.all():
            self._interrupt(worker)
        while self._reap_children() or self._workers.all():
            self._check_workers()
            time.sleep(0.05)

    def _log(self, message: str) -> None:
        sys.stdout.write(f"{message}\n")
        sys.stdout.flush()


def _is_child(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def main(arguments: list[str]) -> None:
    """Serve FLOE_PROJECT; the argument is the descriptor of an open socket."""
    paths = ProjectPaths(Path(os.environ["FLOE_PROJECT"]))
    sys.path.insert(0, str(paths.root))
    if arguments:
        listener = socket.socket(fileno=int(arguments[0]))
        listener.set_inheritable(False)
    else:
        listener = listen(Path(os.environ[SOCKET_VARIABLE]))
    WarmProcess(paths, os.environ[MODULE_VARIABLE], listener).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
