"""The run launcher that Dagster calls, and what the process of a run executes.

A run starts as a fork of the warm process. If that process cannot be reached or cannot load the
project, Dagster's default launcher starts the run: slower, and with Dagster's own error messages.
"""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dagster import (
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    DefaultRunLauncher,
    deserialize_value,
    serialize_value,
)

from floe.errors import FloeError
from floe.execution.os_processes import start_of
from floe.orchestration.dagster_internals import (
    GRPC_INFO_TAG,
    CheckRunHealthResult,
    ConfigurableClassData,
    InstanceRef,
    LaunchRunContext,
    WorkerStatus,
    capture_interrupts,
    execute_run_command_body,
)
from floe.orchestration.home import SOCKET_VARIABLE
from floe.orchestration.launcher.workers import (
    NoResponseError,
    NotReachedError,
    Workers,
    send_request,
)

TERMINATE_SECONDS = 30.0
NOT_STARTED = (DagsterRunStatus.STARTING, DagsterRunStatus.NOT_STARTED)


class RunNotLaunchedError(FloeError):
    """It is unknown whether a run has started, so it must not be started again."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The process that starts runs did not respond: {reason}. See workers.log."
        )


class WarmRunLauncher(DefaultRunLauncher):
    """Launches runs through the warm process and detects runs that have died."""

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(inst_data)

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]
    ) -> "WarmRunLauncher":
        return cls(inst_data=inst_data)

    def launch_run(self, context: LaunchRunContext) -> None:
        run = context.dagster_run
        refusal = self._launch_warm(run)
        if refusal:
            message = f"Launched by the code server, not by a warm process: {refusal}."
            self._instance.report_engine_event(message, run, cls=type(self))
            super().launch_run(context)

    def terminate(self, run_id: str) -> bool:
        if self._workers.find(run_id) is None:
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        try:
            request = {"do": "terminate", "run_id": run_id}
            return "pid" in send_request(_socket(), request, TERMINATE_SECONDS)
        except (NotReachedError, NoResponseError):
            # The warm process is down at the moment, but the run is not.
            worker = self._workers.find(run_id)
            if worker is None or not worker.alive:
                return False
            worker.interrupt()
            return True

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        worker = self._workers.find(run.run_id)
        alive = self._is_alive_elsewhere(run) if worker is None else worker.alive
        if alive:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, "The run's process no longer exists.")

    @property
    def _workers(self) -> Workers:
        return Workers.of_home(Path(self._instance.root_directory))

    def _launch_warm(self, run: DagsterRun) -> str:
        """Launch a run; return the reason if it certainly has not started."""
        origin = run.job_code_origin
        pointer = None if origin is None else origin.repository_origin.code_pointer
        request = {
            "do": "launch",
            "run_id": run.run_id,
            "module": getattr(pointer, "module", None),
            "instance": serialize_value(self._instance.get_ref()),
        }
        try:
            response = send_request(_socket(), request)
        except NotReachedError as error:
            return f"it cannot be reached ({error})"
        except NoResponseError as error:
            if self._workers.find(run.run_id) is None:
                raise RunNotLaunchedError(str(error)) from error
            return ""
        if "refused" in response:
            return str(response["refused"])
        message = f"Started in a warm process (pid: {response['pid']})."
        self._instance.report_engine_event(message, run, cls=type(self))
        return ""

    def _is_alive_elsewhere(self, run: DagsterRun) -> bool:
        """Tell whether the process of a run launched by the code server is alive."""
        if GRPC_INFO_TAG not in run.tags:
            return False
        events = self._instance.all_logs(run.run_id, of_type=DagsterEventType.ENGINE_EVENT)
        metadata = [
            entry.dagster_event.engine_event_data.metadata
            for entry in events
            if entry.dagster_event
        ]
        pids = [values["pid"].value for values in metadata if "pid" in values]
        return not pids or start_of(int(str(pids[-1]))) is not None


def _socket() -> str | None:
    return os.environ.get(SOCKET_VARIABLE)


def execute_run(run_id: str, instance_ref: str) -> int:
    """Execute a run to its end; return the exit code of its process."""
    with capture_interrupts(), _open_instance(instance_ref) as instance:
        run = instance.get_run_by_id(run_id)
        if run is None or run.status not in NOT_STARTED:
            return 1  # It was canceled or failed in the meantime.
        code = execute_run_command_body(
            run_id, instance, lambda event: None, set_exit_code_on_failure=False
        )
        run = instance.get_run_by_id(run_id)
        if run is not None and not run.is_finished:
            instance.report_run_failed(run, "The run's process ended before the run did.")
        return code


def report_death(run_id: str, instance_ref: str, code: int | None) -> None:
    """Report a run whose process has died, unless the run has ended."""
    with _open_instance(instance_ref) as instance:
        run = instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return
        if run.status == DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, "The run's process was stopped.")
        else:
            instance.report_run_failed(run, f"The run's process {_describe_exit(code)}.")


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "no longer exists"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited with code {code}"


def _open_instance(instance_ref: str) -> DagsterInstance:
    return DagsterInstance.from_ref(deserialize_value(instance_ref, InstanceRef))


def reseed_numpy() -> None:
    """Reseed numpy in a fork. Python reseeds its own random numbers."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
