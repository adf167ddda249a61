"""Write what events claim into the catalog, whatever order they come in."""

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
    index_forgotten,
    index_recorded,
    log_failure,
    record_group,
    tidy_up,
)
from floe.catalog.recording.record import Recorder
from floe.catalog.recording.scope import StaleKnowledgeError, UnstorableClaimError

__all__ = [
    "AssertionClaim",
    "CatalogUnavailableError",
    "DatasetClaim",
    "EventClaim",
    "EventFailedError",
    "Recorder",
    "RunClaim",
    "Seen",
    "StaleKnowledgeError",
    "StepClaim",
    "UnstorableClaimError",
    "VersionClaim",
    "index_forgotten",
    "index_recorded",
    "log_failure",
    "record_group",
    "tidy_up",
]
