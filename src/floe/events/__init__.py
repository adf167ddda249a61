"""The event door: receives events and converts them to claims for the catalog."""

from floe.events.errors import BadEventError, InvalidEventError, MalformedEventError
from floe.events.ingest import DoorBusyError, DoorClosedError, EventDoor, read_claim

__all__ = [
    "BadEventError",
    "DoorBusyError",
    "DoorClosedError",
    "EventDoor",
    "InvalidEventError",
    "MalformedEventError",
    "read_claim",
]
