"""`python -m floe.orchestration.launcher.zygote`: has the project loaded, and copies itself.

It has one thread, always: a copy of a process with several would inherit locks that nobody opens
any more. What it knows of the runs is on record in files, so that it can start itself anew when
the project has changed, and another can take its place when it is killed.
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
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from traceback import format_exception_only, print_exc
from types import FrameType
from typing import Any, NoReturn

from floe.execution.spark.processes import start_of
from floe.orchestration.home import MODULE_VARIABLE, SOCKET_VARIABLE
from floe.orchestration.launcher.line import listen, receive
from floe.orchestration.launcher.sources import Marks, mark_files, mark_sources
from floe.orchestration.launcher.workers import Worker, Workers
from floe.settings import ProjectPaths

GRACE_SECONDS = 20.0
"""How long a run may take to end when it is asked to."""
GRACE_VARIABLE = "FLOE_RUN_GRACE_SECONDS"
"""Another time, for those who have less of it."""
READ_SECONDS = 5.0
TICK_SECONDS = 0.5
TASKS = Path("/proc/self/task")


class Zygote:
    """The process that has the project loaded."""

    def __init__(self, paths: ProjectPaths, module: str, listener: socket.socket) -> None:
        self._module, self._listener, self._paths = module, listener, paths
        self._workers = Workers.of_home(paths.state_dir / "dagster")
        self._stopping = False
        # Before the load: what changes meanwhile must not go unseen. The load itself may compile.
        before = mark_sources(paths.root)
        self._broken = self._load()
        self._marks = before | mark_files([paths.compiled])
        gc.collect()
        # What is loaded stays: to look for garbage in it would copy it for every run.
        gc.freeze()

    def serve(self) -> None:
        """Start runs until it is told to stop; then they are stopped too."""
        waking, wake = socket.socketpair()
        for end in (waking, wake):
            end.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        self._say(f"ready with {self._module}" if not self._broken else f"broken: {self._broken}")
        while not self._stopping:
            ready, _, _ = select.select([self._listener, waking], [], [], TICK_SECONDS)
            if waking in ready:
                waking.recv(4096)
            self._reap()
            self._insist()
            if self._listener in ready:
                self._renew_if_changed()
                self._answer()
        self._end_runs()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _load(self) -> str:
        """Load the project; return why that cannot be."""
        from dagster import DagsterInstance, Definitions

        # All that a run is going to import, its storage among it, which is closed again.
        from floe.orchestration.launcher import executing  # noqa: F401

        with DagsterInstance.get() as instance:
            instance.get_runs(limit=1)
        try:
            module = import_module(self._module)
            for found in list(vars(module).values()):
                if isinstance(found, Definitions):
                    found.get_repository_def().load_all_definitions()
        # The user's code may raise anything. Runs are then started without this process, and
        # say in Dagster what is wrong.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            print_exc()
            return format_exception_only(error)[-1].strip()
        return ""

    def _mark(self) -> Marks:
        return mark_sources(self._paths.root) | mark_files([self._paths.compiled])

    def _renew_if_changed(self) -> None:
        """Begin anew, as the same process; whoever is at the door waits there."""
        if self._mark() == self._marks:
            return
        self._say("the project has changed: loading it again")
        signal.set_wakeup_fd(-1)
        self._listener.set_inheritable(True)
        command = [sys.executable, "-m", __spec__.name, str(self._listener.fileno())]
        os.execv(sys.executable, command)  # noqa: S606

    def _answer(self) -> None:
        line, _ = self._listener.accept()
        with line, suppress(OSError, ValueError, LookupError):
            line.settimeout(READ_SECONDS)
            question = json.loads(receive(line))
            doing = {"launch": self._launch, "terminate": self._terminate}
            answer = doing[question["do"]](line, question)
            line.sendall(json.dumps(answer).encode() + b"\n")

    def _launch(self, line: socket.socket, question: dict[str, Any]) -> dict[str, Any]:
        if why := self._why_not(question):
            return {"refused": why}
        run_id, ref = str(question["run_id"]), str(question["instance"])
        gate, open_gate = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(open_gate)
            line.close()
            self._become_run(run_id, ref, gate)
        os.close(gate)
        worker = Worker(run_id, pid, start_of(pid) or "", ref)
        # On record before it begins: who is killed in between closes the gate unopened.
        self._workers.note(worker)
        os.write(open_gate, b"x")
        os.close(open_gate)
        return {"pid": pid}

    def _why_not(self, question: dict[str, Any]) -> str:
        if self._broken:
            return f"the project does not load: {self._broken}"
        if question["module"] != self._module:
            return f"{question['module']} is not what is loaded here"
        count = len(list(TASKS.iterdir())) if TASKS.is_dir() else threading.active_count()
        if count > 1:
            return f"loading the project has started {count - 1} threads, which no copy can have"
        return ""

    def _become_run(self, run_id: str, ref: str, gate: int) -> NoReturn:
        """Be the process of a run from here on, and end with it."""
        code = 1
        try:
            os.setsid()
            self._listener.close()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if os.read(gate, 1):
                from floe.orchestration.launcher.executing import execute, renew_randomness

                renew_randomness()
                code = execute(run_id, ref)
        except BaseException:
            print_exc()
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Not what the process that it was a copy of has to do at its end.
            os._exit(code)

    def _terminate(self, line: socket.socket, question: dict[str, Any]) -> dict[str, Any]:
        worker = self._workers.find(str(question["run_id"]))
        if worker is None or not worker.alive:
            return {"refused": "no such process"}
        self._interrupt(worker)
        return {"pid": worker.pid}

    def _interrupt(self, worker: Worker) -> None:
        worker.interrupt()
        grace = float(os.environ.get(GRACE_VARIABLE, GRACE_SECONDS))
        kill_at = worker.kill_at or time.monotonic() + grace
        self._workers.note(replace(worker, kill_at=kill_at))

    def _insist(self) -> None:
        """Kill those who were asked to end and have not; mourn those whose parent was another."""
        for worker in self._workers.all():
            if worker.kill_at is not None and time.monotonic() > worker.kill_at:
                self._say(f"run {worker.run_id} does not end: killing it")
                worker.kill()
            if not worker.alive and not _is_child(worker.pid):
                self._mourn(worker, None)

    def _reap(self) -> bool:
        """Take note of runs that have ended; tell whether there are others."""
        try:
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                # What it has started and left, while nobody else can have its number.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(found.si_pid, signal.SIGKILL)
                _, status = os.waitpid(found.si_pid, 0)
                for worker in self._workers.all():
                    if worker.pid == found.si_pid:
                        self._mourn(worker, os.waitstatus_to_exitcode(status))
        except ChildProcessError:
            return False
        return True

    def _mourn(self, worker: Worker, code: int | None) -> None:
        """Take a run off the record; of one that died, Dagster is told by a copy of this."""
        self._workers.forget(worker.run_id)
        if code == 0:
            return
        self._say(f"the process of run {worker.run_id} has died ({code})")
        if os.fork() == 0:
            try:
                signal.set_wakeup_fd(-1)
                self._listener.close()
                from floe.orchestration.launcher.executing import report_death

                report_death(worker.run_id, worker.instance, code)
            except BaseException:
                print_exc()
                raise
            finally:
                sys.stderr.flush()
                os._exit(0)

    def _end_runs(self) -> None:
        for worker in self._workers.all():
            self._interrupt(worker)
        while self._reap() or self._workers.all():
            self._insist()
            time.sleep(0.05)

    def _say(self, line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def _is_child(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def main(arguments: list[str]) -> None:
    """Serve the project of FLOE_PROJECT; a socket that is open already is given by number."""
    paths = ProjectPaths(Path(os.environ["FLOE_PROJECT"]))
    sys.path.insert(0, str(paths.root))
    if arguments:
        listener = socket.socket(fileno=int(arguments[0]))
        listener.set_inheritable(False)
    else:
        listener = listen(Path(os.environ[SOCKET_VARIABLE]))
    Zygote(paths, os.environ[MODULE_VARIABLE], listener).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
