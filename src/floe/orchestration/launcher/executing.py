"""What the process of a run does, and what is said of one that has died."""

import signal
import sys

from dagster import DagsterInstance, DagsterRunStatus

# The command `dagster api execute_run` does the same, but closes the instance before it can be
# seen whether the run has ended. The version of Dagster is pinned, and a test holds this to it.
from dagster._cli.api import _execute_run_command_body
from dagster._core.instance import InstanceRef
from dagster._serdes import deserialize_value
from dagster._utils.interrupts import capture_interrupts

NOT_BEGUN = (DagsterRunStatus.STARTING, DagsterRunStatus.NOT_STARTED)


def execute(run_id: str, instance_ref: str) -> int:
    """Execute a run from its beginning to its end; return the exit code of its process."""
    with capture_interrupts(), _instance(instance_ref) as instance:
        run = instance.get_run_by_id(run_id)
        if run is None or run.status not in NOT_BEGUN:
            return 1  # it was given up meanwhile
        code = _execute_run_command_body(
            run_id, instance, lambda event: None, set_exit_code_on_failure=False
        )
        run = instance.get_run_by_id(run_id)
        if run is not None and not run.is_finished:
            instance.report_run_failed(
                run, "The process of the run came to its end before the run."
            )
        return code


def report_death(run_id: str, instance_ref: str, code: int | None) -> None:
    """Tell Dagster that the process of a run is dead, if the run does not know."""
    with _instance(instance_ref) as instance:
        run = instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return
        if run.status == DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, "The process of the run was ended.")
        else:
            instance.report_run_failed(run, f"The process of the run {_end(code)}.")


def _end(code: int | None) -> str:
    if code is None:
        return "is gone"
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def _instance(instance_ref: str) -> DagsterInstance:
    return DagsterInstance.from_ref(deserialize_value(instance_ref, InstanceRef))


def renew_randomness() -> None:
    """Let a copy of a process draw other numbers than its siblings. Python does so by itself."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
