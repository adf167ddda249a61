"""Write what events claim into the catalog, whatever order they arrive in."""

from floe.catalog.recording.claims import (
    AssertionClaim,
    DatasetClaim,
    EventClaim,
    RunClaim,
    Seen,
    StepClaim,
    VersionClaim,
)
from floe.catalog.recording.group import (
    CatalogUnavailableError,
    EventFailedError,
    index_missed,
    index_recorded,
    log_failure,
    record_group,
    tidy_up,
)
from floe.catalog.recording.recorder import Recorder
from floe.catalog.recording.transaction import StaleCacheError, UnstorableClaimError

__all__ = [
    "AssertionClaim",
    "CatalogUnavailableError",
    "DatasetClaim",
    "EventClaim",
    "EventFailedError",
    "Recorder",
    "RunClaim",
    "Seen",
    "StaleCacheError",
    "StepClaim",
    "UnstorableClaimError",
    "VersionClaim",
    "index_missed",
    "index_recorded",
    "log_failure",
    "record_group",
    "tidy_up",
]
