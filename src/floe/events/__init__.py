"""What happened: events come in by one door, as claims that the catalog records."""

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
