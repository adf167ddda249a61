"""The run launcher: a run begins as a copy of a process that has the project loaded.

Where that process cannot be reached, or cannot load the project, the run is launched as Dagster
does it by itself: slower, and with Dagster's own words for what is wrong.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dagster import DagsterRun, DefaultRunLauncher
from dagster._core.events import DagsterEventType
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._serdes import ConfigurableClassData, serialize_value

from floe.errors import FloeError
from floe.execution.spark.processes import start_of
from floe.orchestration.home import SOCKET_VARIABLE
from floe.orchestration.launcher.line import NotAnsweredError, NotReachedError, ask
from floe.orchestration.launcher.workers import Workers

TERMINATE_SECONDS = 30.0


class RunNotLaunchedError(FloeError):
    """Nobody knows whether a run has begun, so it must not be begun twice."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The process that starts runs did not answer: {why}. Look at workers.log."
        )


class WarmRunLauncher(DefaultRunLauncher):
    """Launches runs through the zygote, and knows when one of them is dead."""

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(inst_data)

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]
    ) -> "WarmRunLauncher":
        return cls(inst_data=inst_data)

    def launch_run(self, context: LaunchRunContext) -> None:
        run = context.dagster_run
        why = self._launch_warm(run)
        if why:
            said = f"Launched by the code server, not by a warm process: {why}."
            self._instance.report_engine_event(said, run, cls=type(self))
            super().launch_run(context)

    def terminate(self, run_id: str) -> bool:
        if self._workers.find(run_id) is None:
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        try:
            question = {"do": "terminate", "run_id": run_id}
            return "pid" in ask(_socket(), question, TERMINATE_SECONDS)
        except (NotReachedError, NotAnsweredError):
            # The zygote is gone for the moment, and the run is not.
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
        alive = self._lives_elsewhere(run) if worker is None else worker.alive
        if alive:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, "The process of the run is gone.")

    @property
    def _workers(self) -> Workers:
        return Workers.of_home(Path(self._instance.root_directory))

    def _launch_warm(self, run: DagsterRun) -> str:
        """Launch a run; return why that cannot be, when it is certain that it has not begun."""
        origin = run.job_code_origin
        pointer = None if origin is None else origin.repository_origin.code_pointer
        question = {
            "do": "launch",
            "run_id": run.run_id,
            "module": getattr(pointer, "module", None),
            "instance": serialize_value(self._instance.get_ref()),
        }
        try:
            answer = ask(_socket(), question)
        except NotReachedError as error:
            return f"none is there ({error})"
        except NotAnsweredError as error:
            if self._workers.find(run.run_id) is None:
                raise RunNotLaunchedError(str(error)) from error
            return ""
        if "refused" in answer:
            return str(answer["refused"])
        said = f"Started in a warm process (pid: {answer['pid']})."
        self._instance.report_engine_event(said, run, cls=type(self))
        return ""

    def _lives_elsewhere(self, run: DagsterRun) -> bool:
        """Tell whether a run that the code server has launched still has its process."""
        if GRPC_INFO_TAG not in run.tags:
            return False
        events = self._instance.all_logs(run.run_id, of_type=DagsterEventType.ENGINE_EVENT)
        found = [
            one.dagster_event.engine_event_data.metadata for one in events if one.dagster_event
        ]
        pids = [metadata["pid"].value for metadata in found if "pid" in metadata]
        return not pids or start_of(int(str(pids[-1]))) is not None


def _socket() -> str | None:
    return os.environ.get(SOCKET_VARIABLE)
