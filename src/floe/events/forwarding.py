"""Forward all recorded events to other OpenLineage servers, in order.

The catalog has a cursor for each server: the id of the last event it accepted or rejected. If a
server is down, the event is retried until it responds, so nothing is lost. A rejected event is
logged and skipped, so nothing is blocked. After a crash, the events since the cursor was last
saved, at most a page, are sent again in the same order.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from floe.catalog import Catalog, move_cursor, read_cursor
from floe.catalog.database import OUTAGES
from floe.catalog.events import BodyWithId, last_of_next_events, list_bodies
from floe.catalog.leases import acquire_lease, read_lease, release_lease, renew_lease
from floe.client.transport import EVENT_PATH, Transport, Verdict
from floe.errors import FloeError
from floe.events.openlineage import DamagedBodyError, decompress

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

PAGE_SIZE = 50
TIMEOUT_SECONDS = 10.0
POLL_SECONDS = 1.0
"""Seconds to wait if there is nothing to send, or another process is the forwarder."""
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 1.0, 15.0
WRITER_POLL_SECONDS = 0.02
# Longer than a request and the wait for the next retry together.
LEASE_LASTS = timedelta(seconds=30)
STOP_SECONDS = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Destination:
    """An OpenLineage server: its base URL, and headers such as an API key."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def base(self) -> str:
        """The URL without the path that every OpenLineage server has."""
        return self.url.rstrip("/").removesuffix(EVENT_PATH)

    @property
    def reader(self) -> str:
        """The name of its cursor and its lease; long URLs are shortened to a hash."""
        name = f"openlineage {self.base}"
        if len(name) <= 200:
            return name
        return f"openlineage {hashlib.sha256(self.base.encode()).hexdigest()}"


class ForwarderReplacedError(FloeError):
    """Another process has taken over forwarding to this server."""

    def __init__(self, destination: Destination) -> None:
        super().__init__(f"Another process forwards events to {destination.base} now.")


class Forwarder:
    """Sends events to one server in its own thread. Only one process at a time sends."""

    def __init__(
        self,
        catalog: Catalog,
        destination: Destination,
        holder: str,
        is_dead: Callable[[str], bool] = lambda _: False,
        lasts: timedelta = LEASE_LASTS,
    ) -> None:
        """`is_dead` returns whether another holder of the lease is known to have ended."""
        self._catalog, self._destination, self._holder = catalog, destination, holder
        self._is_dead, self._lasts = is_dead, lasts
        self._transport = Transport(
            destination.base, None, TIMEOUT_SECONDS, headers=destination.headers
        )
        self._fence: int | None = None
        self._renewed = 0.0
        self._failures = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="forwarder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current event; wait only a few seconds for a slow server."""
        self._stopping.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        wait = 0.0
        while not self._stopping.wait(wait):
            try:
                wait = self._forward_page()
            except ForwarderReplacedError:
                self._fence = None
                wait = POLL_SECONDS
            except OUTAGES as error:
                log.warning("Cannot forward events: the catalog is not available. %s", error)
                wait = self._retry_wait()
        self._transport.close()
        self._release()

    def _release(self) -> None:
        if self._fence is None:
            return
        # Without the catalog, the lease expires by itself.
        with suppress(*OUTAGES), self._catalog.writing() as session:
            release_lease(session, self._destination.reader, self._holder, self._fence)

    def _forward_page(self) -> float:
        """Send the next events; return how many seconds to wait before the next page."""
        if not self._has_lease():
            return POLL_SECONDS
        events = self._next_events()
        sent = self._send_in_order(events)
        if sent:
            self._save(events[sent - 1].event_id)
        if sent < len(events):
            return self._retry_wait()
        return 0.0 if events else POLL_SECONDS

    def _send_in_order(self, events: Sequence[BodyWithId]) -> int:
        """Send events until one must be retried later; return the number sent."""
        for index, event in enumerate(events):
            if self._stopping.is_set() or self._send(event) is Verdict.LATER:
                return index
            if self._is_lease_old():
                self._save(event.event_id)
        return len(events)

    def _has_lease(self) -> bool:
        if self._fence is not None and not self._is_lease_old():
            return True
        reader = self._destination.reader
        with self._catalog.writing() as session:
            self._free_lease_of_dead(session)
            self._fence = acquire_lease(session, reader, self._holder, self._lasts)
        self._renewed = time.monotonic()
        return self._fence is not None

    def _free_lease_of_dead(self, session: "Session") -> None:
        lease = read_lease(session, self._destination.reader)
        if lease is not None and lease.holder and self._is_dead(lease.holder):
            release_lease(session, lease.name, lease.holder, lease.fence)

    def _is_lease_old(self) -> bool:
        return time.monotonic() - self._renewed > self._lasts.total_seconds() / 3

    def _next_events(self) -> Sequence[BodyWithId]:
        """Return the events after the cursor, without gaps that could still be filled.

        With concurrent transactions, a lower id can be committed after a higher one. So read the
        last id first, then wait for every transaction that may have a lower id. Transactions that
        start later get higher ids.
        """
        with self._catalog.reading() as session:
            cursor = read_cursor(session, self._destination.reader)
            last = last_of_next_events(session, cursor, PAGE_SIZE)
        if last is None:
            return ()
        self._wait_for_writers()
        if self._stopping.is_set():
            return ()
        with self._catalog.reading() as session:
            return list_bodies(session, cursor, last)

    def _wait_for_writers(self) -> None:
        store = self._catalog.store
        with self._catalog.reading() as session:
            writers = store.event_writers(session)
        while writers and not self._stopping.wait(WRITER_POLL_SECONDS):
            with self._catalog.reading() as session:
                writers &= store.event_writers(session)

    def _send(self, event: BodyWithId) -> Verdict:
        try:
            body = decompress(event.payload, event.codec)
        except DamagedBodyError as error:
            log.warning("Event %d is skipped: %s", event.event_id, error)
            return Verdict.REFUSED
        answer = self._transport.post_one(body)
        if answer.verdict is Verdict.LATER:
            self._failures += 1
            if self._failures == 1:
                log.warning("Cannot forward events, retrying: %s", answer.reason)
            return answer.verdict
        if self._failures:
            log.warning("Forwarding events to %s again.", self._destination.base)
        self._failures = 0
        if answer.verdict is Verdict.REFUSED:
            log.warning("Event %d was rejected and is skipped: %s", event.event_id, answer.reason)
        return answer.verdict

    def _save(self, event_id: int) -> None:
        """Move the cursor, if this process still holds the lease."""
        reader = self._destination.reader
        fence = self._fence
        with self._catalog.writing() as session:
            if fence is None or not renew_lease(session, reader, self._holder, fence, self._lasts):
                raise ForwarderReplacedError(self._destination)
            move_cursor(session, reader, event_id)
        self._renewed = time.monotonic()

    def _retry_wait(self) -> float:
        exponent = min(max(self._failures - 1, 0), 10)
        return min(FIRST_RETRY_SECONDS * float(2**exponent), LAST_RETRY_SECONDS)
