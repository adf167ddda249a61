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
from floe.orchestration.backfilling.interrupting import says_interrupted

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""What a run says is in its log; on the terminal it would tear the progress bar."""


class InThisProcess:
    """Runs batches here and now; who ends this process ends them."""

    where = "in this process"
    tags: Mapping[str, str] = {HERE_TAG: "true"}

    def __init__(
        self, instance: DagsterInstance, job: JobDefinition, report: Callable[[str], None]
    ) -> None:
        self._instance = instance
        self._job = job
        self._report = report
        """Reports a run to the catalog: without `floe up` no sensor does it."""

    def run(
        self,
        tags: Mapping[str, str],
        assets: list[AssetKey] | None,
        began: Callable[[str], None],
    ) -> DagsterRunStatus:
        """Run the job; Ctrl-C and SIGTERM cancel the run and then go on."""
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
            interrupted = any(map(says_interrupted, result.all_events))
        if interrupted:
            self._settle(run_id)
            self._report(run_id)
            raise KeyboardInterrupt
        self._report(run_id)
        return self.wait(run_id)

    def wait(self, run_id: str) -> DagsterRunStatus:
        """Return how a run has ended: here none goes on."""
        run = self._instance.get_run_by_id(run_id)
        return DagsterRunStatus.FAILURE if run is None else run.status

    def _settle(self, run_id: str) -> None:
        """Let a run be canceled: Dagster, which hears the signal first, has it as failed."""
        run = self._instance.get_run_by_id(run_id)
        if run is not None and run.status is not DagsterRunStatus.CANCELED:
            self._instance.report_run_canceled(run, "It was stopped by the user.")
