"""The event door: concurrent events share a transaction; each gets its own answer.

One writer takes everything that has arrived, records it as a group and answers every sender after
the commit. So 201 means committed, and under load there are few commits.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar, overload

from floe import clock
from floe.catalog import Catalog
from floe.catalog.recording import (
    EventClaim,
    Recorder,
    index_missed,
    index_recorded,
    log_failure,
    record_group,
    tidy_up,
)
from floe.errors import FloeError
from floe.events.claim_reader import RETENTION, claims_of, excess_reasons, reserved_reasons
from floe.events.errors import InvalidEventError
from floe.events.openlineage import future_reasons, read_event
from floe.spec.dates import DEFAULT_RULES, DateRules

log = logging.getLogger(__name__)
MAX_GROUP = 200
MAX_WAITING = 5_000
# After this long without events, update the search index.
IDLE_SECONDS = 0.3
# Under constant load, index at least this often. Not sooner, because new datasets change often.
INDEX_SECONDS = 5.0


class DoorBusyError(FloeError):
    """Too many events are waiting."""

    def __init__(self) -> None:
        super().__init__("Too many events are waiting to be written. Try again in a moment.")


class DoorClosedError(FloeError):
    """The door is closed."""

    def __init__(self) -> None:
        super().__init__("The event door is closing. Try again in a moment.")


def read_claim(
    body: bytes,
    *,
    historical: bool = False,
    retention: timedelta = RETENTION,
    foreign: bool = False,
) -> EventClaim:
    """Decode an event and its claims; raise BadEventError with all reasons if invalid.

    Set `foreign` for events from the network: they may not claim to be from floe's own processes.
    An unexpected error is logged and raised as EventFailedError.
    """
    now = clock.now()
    try:
        event = read_event(body)
        claim = claims_of(event, body, now, historical=historical, retention=retention)
        reasons = [*future_reasons(event, now), *excess_reasons(event, claim)]
        if foreign:
            reasons += reserved_reasons(event, claim)
    except FloeError:
        raise
    except Exception as error:
        raise log_failure(error) from error
    if reasons:
        raise InvalidEventError(reasons)
    return claim


class Answer(Protocol):
    """Receives the outcome of claims: the errors of single claims, by index."""

    def set_result(self, errors: dict[int, FloeError], /) -> None: ...

    def set_exception(self, error: BaseException, /) -> None: ...


SomeAnswer = TypeVar("SomeAnswer", bound=Answer)


@dataclass(frozen=True, slots=True)
class PendingClaims:
    """Claims that share an answer."""

    claims: Sequence[EventClaim]
    answer: Answer


class GroupWriter:
    """Writes groups of claims, and keeps the search index up to date."""

    def __init__(
        self, catalog: Catalog, dates: DateRules = DEFAULT_RULES, *, own: bool = False
    ) -> None:
        self._catalog = catalog
        self._recorder = Recorder(catalog.store, dates, own=own)
        self._indexed = time.monotonic()

    def start(self) -> None:
        """Index datasets that an interrupted writer left unindexed."""
        # A short database outage must not keep the door closed.
        try:
            index_missed(self._catalog)
        except FloeError as error:
            log.warning("Earlier datasets were not indexed for the search: %s", error)

    def write(self, group: Sequence[PendingClaims]) -> None:
        """Record a group, and answer all senders."""
        claims = [claim for waiting in group for claim in waiting.claims]
        try:
            errors = record_group(self._catalog, self._recorder, claims, clock.now())
        except BaseException as error:
            for waiting in group:
                waiting.answer.set_exception(error)
            if not isinstance(error, FloeError):
                raise
        else:
            _answer(group, errors)

    def maintain(self, *, idle: bool) -> None:
        """Update the search index when idle, or when it is due."""
        if not idle and time.monotonic() - self._indexed < INDEX_SECONDS:
            return
        self._indexed = time.monotonic()
        # If it fails, the next start indexes what is missing.
        try:
            index_recorded(self._catalog, self._recorder)
            if idle:
                tidy_up(self._catalog, self._recorder)
        except FloeError as error:
            log.warning("The search index or the store maintenance is delayed: %s", error)

    def close(self) -> None:
        """Close the recorder."""
        self._recorder.close()


class EventDoor:
    """Accepts claims from any thread and writes them in a single thread.

    `answered` is called after each group was answered. An `own` door accepts floe's own reports:
    its caller has direct access to the catalog's database, not just a token.
    """

    def __init__(
        self,
        catalog: Catalog,
        answered: Callable[[], None] = lambda: None,
        dates: DateRules = DEFAULT_RULES,
        *,
        own: bool = False,
    ) -> None:
        self._writer, self._answered = GroupWriter(catalog, dates, own=own), answered
        self._queue: queue.SimpleQueue[PendingClaims | None] = queue.SimpleQueue()
        self._waiting = 0
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="event-door", daemon=True)
        self._thread.start()

    @overload
    def submit(self, claims: Sequence[EventClaim]) -> "Future[dict[int, FloeError]]": ...

    @overload
    def submit(self, claims: Sequence[EventClaim], answer: SomeAnswer) -> SomeAnswer: ...

    def submit(self, claims: Sequence[EventClaim], answer: Answer | None = None) -> Answer:
        """Submit claims; their errors, by index, are set on the answer after the commit."""
        with self._lock:
            if self._closed:
                raise DoorClosedError
            if self._waiting and self._waiting + len(claims) > MAX_WAITING:
                raise DoorBusyError
            self._waiting += len(claims)
        waiting = PendingClaims(claims, Future() if answer is None else answer)
        self._queue.put(waiting)
        return waiting.answer

    def close(self) -> None:
        """Write the waiting claims, then stop."""
        with self._lock:
            self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._serve()
        finally:
            # Whatever the reason, no sender may wait forever.
            with self._lock:
                self._closed = True
            self._reject_waiting()
            self._writer.close()

    def _reject_waiting(self) -> None:
        while not self._queue.empty():
            waiting = self._queue.get()
            if waiting is not None:
                waiting.answer.set_exception(DoorClosedError())
        self._answered()

    @property
    def is_open(self) -> bool:
        """Whether events are accepted: false once the door is closed or has failed."""
        return not self._closed

    def _serve(self) -> None:
        self._writer.start()
        closing = False
        while not closing:
            group, closing = self._take()
            if group:
                self._write(group)
            self._writer.maintain(idle=not group)

    def _take(self) -> tuple[list[PendingClaims], bool]:
        """Return waiting claims, up to the group size, and whether the door is closing.

        The group is empty when idle and when closing.
        """
        group: list[PendingClaims] = []
        count = 0
        try:
            taken = self._queue.get(timeout=IDLE_SECONDS)
            while taken is not None:
                group.append(taken)
                count += len(taken.claims)
                if count >= MAX_GROUP:
                    return group, False
                taken = self._queue.get_nowait()
        except queue.Empty:
            return group, False
        # Write the claims before the end marker first, then take the marker again.
        if group:
            self._queue.put(None)
            return group, False
        return group, True

    def _write(self, group: Sequence[PendingClaims]) -> None:
        try:
            self._writer.write(group)
        finally:
            with self._lock:
                self._waiting -= sum(len(waiting.claims) for waiting in group)
            self._answered()


def _answer(group: Iterable[PendingClaims], errors: Mapping[int, FloeError]) -> None:
    start = 0
    for waiting in group:
        end = start + len(waiting.claims)
        waiting.answer.set_result(
            {index - start: error for index, error in errors.items() if start <= index < end}
        )
        start = end
