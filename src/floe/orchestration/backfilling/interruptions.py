"""Tell interrupted steps and runs from failed ones."""

from dagster import DagsterEvent, DagsterEventType


def is_interruption(event: DagsterEvent) -> bool:
    """Tell whether a signal ended the step, or the run between two steps."""
    if event.is_step_failure:
        source = event.step_failure_data.error_source
        return source is not None and source.name == "INTERRUPT"
    if event.event_type is DagsterEventType.RUN_FAILURE:
        reason = event.job_failure_data.failure_reason
        return reason is not None and reason.name == "UNEXPECTED_TERMINATION"
    return event.event_type is DagsterEventType.RUN_CANCELED
