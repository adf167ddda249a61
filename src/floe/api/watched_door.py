"""A door that knows whether the catalog takes events, which is what readiness reports.

An event that the database did not take is tried again in the background until it is stored or
refused by itself: so an outage is over when that very event gets through, also if nobody sends.
To store an event that was answered 503 is harmless, because its sender's retry changes nothing.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from floe.api.doors import Door, Wrong
from floe.catalog.recording import CatalogUnavailableError, EventClaim
from floe.errors import FloeError

log = logging.getLogger(__name__)
RETRY_SECONDS = 2.0


class WatchedDoor:
    """Passes claims on to a door, and remembers the outage that one of them met."""

    def __init__(self, door: Door, retry_seconds: float = RETRY_SECONDS) -> None:
        self._door, self._retry_seconds = door, retry_seconds
        self._retrying: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self.outage: str | None = None
        """Why events cannot be stored now; None while they can."""

    @property
    def is_open(self) -> bool:
        return self._door.is_open

    async def write(self, claims: Sequence[EventClaim]) -> Wrong:
        try:
            wrong = await self._door.write(claims)
        except CatalogUnavailableError as error:
            self._note(claims[0], error)
            raise
        for place, fault in wrong.items():
            if isinstance(fault, CatalogUnavailableError):
                self._note(claims[place], fault)
        return wrong

    async def close(self) -> None:
        self._closing.set()
        if self._retrying is not None:
            await self._retrying
        await self._door.close()

    def _note(self, claim: EventClaim, error: CatalogUnavailableError) -> None:
        if self.outage is not None:
            return
        log.warning("Events cannot be stored; senders are told to retry. %s", error)
        self.outage = error.reason
        self._retrying = asyncio.get_running_loop().create_task(self._retry(claim))

    async def _retry(self, claim: EventClaim) -> None:
        """Try an event again until the database has taken or refused it."""
        try:
            while not await self._is_closed_within(self._retry_seconds):
                if await self._is_settled(claim):
                    log.warning("Events are stored again.")
                    return
        finally:
            self.outage = None

    async def _is_settled(self, claim: EventClaim) -> bool:
        try:
            error: FloeError | None = (await self._door.write([claim])).get(0)
        except FloeError as outage:
            # A door that is busy, or whose process has ended, says nothing about the database.
            if isinstance(outage, CatalogUnavailableError):
                self.outage = outage.reason
            return False
        if isinstance(error, CatalogUnavailableError):
            self.outage = error.reason
            return False
        return True

    async def _is_closed_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
        return self._closing.is_set()
