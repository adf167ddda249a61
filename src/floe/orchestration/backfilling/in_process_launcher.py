"""Run a batch in this process, on the Dagster home of the project."""

from collections.abc import Callable, Mapping
from uuid import uuid4

from dagster import (
    AssetKey,
    DagsterExecutionInterruptedError,
    DagsterInstance,
    DagsterRunStatus,
    JobDefinition,
)

from floe.orchestration.backfilling.history import HERE_TAG
from floe.orchestration.backfilling.interruptions import is_interruption

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""Runs log to Dagster only: output would break the progress bar."""


class InProcessLauncher:
    """Runs batches in this process; they end with it."""

    where = "in this process"
    tags: Mapping[str, str] = {HERE_TAG: "true"}

    def __init__(
        self, instance: DagsterInstance, job: JobDefinition, report: Callable[[str], None]
    ) -> None:
        self._instance = instance
        self._job = job
        self._report = report
        """Reports a run to the catalog, because without `floe up` no sensor does."""

    def run(
        self,
        tags: Mapping[str, str],
        assets: list[AssetKey] | None,
        began: Callable[[str], None],
    ) -> DagsterRunStatus:
        """Run the job; Ctrl-C and SIGTERM cancel the run and are raised again."""
        run_id = str(uuid4())
        began(run_id)
        try:
            result = self._job.execute_in_process(
                run_config=QUIET,
                instance=self._instance,
                tags=dict(tags),
                raise_on_error=False,
                run_id=run_id,
                asset_selection=assets,
            )
        except (KeyboardInterrupt, DagsterExecutionInterruptedError):
            interrupted = True
        else:
            interrupted = any(map(is_interruption, result.all_events))
        if interrupted:
            self._mark_canceled(run_id)
            self._report(run_id)
            raise KeyboardInterrupt
        self._report(run_id)
        return self.wait(run_id)

    def wait(self, run_id: str) -> DagsterRunStatus:
        """Return the status of a run; runs of this launcher have always ended."""
        run = self._instance.get_run_by_id(run_id)
        return DagsterRunStatus.FAILURE if run is None else run.status

    def _mark_canceled(self, run_id: str) -> None:
        """Mark a run as canceled: Dagster gets the signal first and marks it as failed."""
        run = self._instance.get_run_by_id(run_id)
        if run is not None and run.status is not DagsterRunStatus.CANCELED:
            self._instance.report_run_canceled(run, "It was stopped by the user.")
