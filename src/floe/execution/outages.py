"""Wait for a catalog that does not answer: what was written must not be lost to an outage."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from floe import clock
from floe.catalog.database import OUTAGES
from floe.errors import FloeError
from floe.execution.cancelling import Cancellation

PATIENCE = timedelta(minutes=15)
PAUSE_SECONDS = 2.0

Result = TypeVar("Result")


class CatalogAwayError(FloeError):
    """The catalog did not come back in time."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The catalog has not answered for {PATIENCE.seconds // 60} minutes: {reason}. "
            "What was written is kept. When it is back, run: floe run --resume RUN"
        )


def patiently(action: Callable[[], Result], cancellation: Cancellation) -> Result:
    """Do something with the catalog, and wait where it does not answer."""
    until = clock.now() + PATIENCE
    while True:
        try:
            return action()
        except OUTAGES as error:
            if clock.now() >= until:
                raise CatalogAwayError(str(error.orig or error)) from error
            cancellation.wait(PAUSE_SECONDS)
