"""Every execution is observed: Dagster's event log is read, and the catalog is told."""

from floe.orchestration.observing.knowledge import Knowledge, know
from floe.orchestration.observing.reader import Observation, observe, observe_run
from floe.orchestration.observing.sensor import build_observer

__all__ = ["Knowledge", "Observation", "build_observer", "know", "observe", "observe_run"]
