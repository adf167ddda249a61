"""Run a batch in this process, on the Dagster home of the project."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from uuid import uuid4

from dagster import (
    AssetKey,
    DagsterExecutionInterruptedError,
    DagsterInstance,
    DagsterRunStatus,
    ExecuteInProcessResult,
    JobDefinition,
)

from floe.orchestration.backfilling.history import HERE_TAG, UNDER_WAY

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""What a run says is in its log; on the terminal it would tear the progress bar."""


class InThisProcess:
    """Runs batches here and now; who ends this process ends them."""

    where = "in this process"
    tags: Mapping[str, str] = {HERE_TAG: "true"}

    def __init__(self, instance: DagsterInstance, job: JobDefinition) -> None:
        self._instance = instance
        self._job = job

    def run(
        self,
        tags: Mapping[str, str],
        assets: list[AssetKey] | None,
        began: Callable[[str], None],
    ) -> DagsterRunStatus:
        """Run the job; Ctrl-C and SIGTERM cancel the run and then go on."""
        run_id = str(uuid4())
        began(run_id)
        stopping = _Stopping(self._instance, run_id)
        with stopping.heard():
            result = self._job.execute_in_process(
                run_config=QUIET,
                instance=self._instance,
                tags=dict(tags),
                raise_on_error=False,
                run_id=run_id,
                asset_selection=assets,
            )
        if stopping.wanted or _was_interrupted(result):
            self._settle(run_id)
            raise KeyboardInterrupt
        return self.wait(run_id)

    def wait(self, run_id: str) -> DagsterRunStatus:
        """Return how a run has ended: here none goes on."""
        run = self._instance.get_run_by_id(run_id)
        return DagsterRunStatus.FAILURE if run is None else run.status

    def _settle(self, run_id: str) -> None:
        """Let a run be canceled that was interrupted while others heard the signal."""
        run = self._instance.get_run_by_id(run_id)
        if run is not None and run.status is not DagsterRunStatus.CANCELED:
            self._instance.report_run_canceled(run, "It was stopped by the user.")


def _was_interrupted(result: ExecuteInProcessResult) -> bool:
    failures = (event.step_failure_data for event in result.all_events if event.is_step_failure)
    sources = (failure.error_source for failure in failures)
    return any(source is not None and source.name == "INTERRUPT" for source in sources)


class _Stopping:
    """Tells Dagster that a run is to be canceled before it is: otherwise it would count as failed.

    The signal comes at any moment, also while this thread writes to Dagster's database. So another
    thread writes, and then sends the signal once more, which interrupts.
    """

    def __init__(self, instance: DagsterInstance, run_id: str) -> None:
        self._instance = instance
        self._run_id = run_id
        self.wanted = False

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Hear Ctrl-C and SIGTERM for a while."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._hear) for number in numbers}
        try:
            yield
        except (KeyboardInterrupt, DagsterExecutionInterruptedError):
            self.wanted = True
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.wanted:
            raise KeyboardInterrupt
        self.wanted = True
        threading.Thread(target=self._cancel, args=(number,), daemon=True).start()

    def _cancel(self, number: int) -> None:
        run = self._instance.get_run_by_id(self._run_id)
        if run is not None and run.status in UNDER_WAY:
            self._instance.report_run_canceling(run)
        os.kill(os.getpid(), number)
