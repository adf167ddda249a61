"""The event door: events that arrive together share one transaction, and each gets its own answer.

One writer takes all that has arrived, records it as a group and answers every sender after the
commit. So 201 means committed, and a busy door commits seldom.
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
    index_forgotten,
    index_recorded,
    log_failure,
    record_group,
    tidy_up,
)
from floe.errors import FloeError
from floe.events.claims import RETENTION, claims_of, excess_reasons, reserved_reasons
from floe.events.errors import InvalidEventError
from floe.events.openlineage import late_reasons, read_event
from floe.spec.dates import DEFAULT_RULES, DateRules

log = logging.getLogger(__name__)
MOST_IN_GROUP = 200
MOST_WAITING = 5_000
# When nothing has come for so long, there is time for the search index.
QUIET_SECONDS = 0.3
# One that never comes has to be made: later, because a dataset that a night makes changes often.
INDEX_SECONDS = 5.0


class DoorBusyError(FloeError):
    """More events wait than the door can write soon."""

    def __init__(self) -> None:
        super().__init__("Too many events are waiting to be written. Try again in a moment.")


class DoorClosedError(FloeError):
    """The door takes no more events."""

    def __init__(self) -> None:
        super().__init__("The event door is closing. Try again in a moment.")


def read_claim(
    body: bytes,
    *,
    historical: bool = False,
    retention: timedelta = RETENTION,
    foreign: bool = False,
) -> EventClaim:
    """Read an event and what it claims; raise BadEventError with every reason against it.

    `foreign` is set for events that come over the network: those cannot speak for floe's own
    processes. An unexpected error concerns this event only: it is logged and raised as
    EventFailedError.
    """
    now = clock.now()
    try:
        event = read_event(body)
        claim = claims_of(event, body, now, historical=historical, retention=retention)
        reasons = [*late_reasons(event, now), *excess_reasons(event, claim)]
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
    """Where the door puts what became of claims: what was wrong with single ones, by place."""

    def set_result(self, wrong: dict[int, FloeError], /) -> None: ...

    def set_exception(self, error: BaseException, /) -> None: ...


SomeAnswer = TypeVar("SomeAnswer", bound=Answer)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Claims that share an answer, and those who wait for it."""

    claims: Sequence[EventClaim]
    answer: Answer


class GroupWriter:
    """Writes groups of claims, one after the other, and keeps the search up to date."""

    def __init__(
        self, catalog: Catalog, dates: DateRules = DEFAULT_RULES, *, own: bool = False
    ) -> None:
        self._catalog = catalog
        self._recorder = Recorder(catalog.store, dates, own=own)
        self._indexed = time.monotonic()

    def start(self) -> None:
        """Make findable what a writer left behind that was cut off."""
        # A database that is away for a moment must not keep the door closed for good.
        try:
            index_forgotten(self._catalog)
        except FloeError as error:
            log.warning("Datasets of before were not indexed for the search: %s", error)

    def write(self, group: Sequence[Waiting]) -> None:
        """Record a group, and answer all who wait for it."""
        claims = [claim for waiting in group for claim in waiting.claims]
        try:
            wrong = record_group(self._catalog, self._recorder, claims, clock.now())
        except BaseException as error:
            for waiting in group:
                waiting.answer.set_exception(error)
            if not isinstance(error, FloeError):
                raise
        else:
            _answer(group, wrong)

    def rest(self, *, quiet: bool) -> None:
        """Use a quiet moment for the search, or make one."""
        if not quiet and time.monotonic() - self._indexed < INDEX_SECONDS:
            return
        self._indexed = time.monotonic()
        # If it fails, the next start finds what is not indexed.
        try:
            index_recorded(self._catalog, self._recorder)
            if quiet:
                tidy_up(self._catalog, self._recorder)
        except FloeError as error:
            log.warning("The search and the store are not up to date yet: %s", error)

    def close(self) -> None:
        """Give back what it holds."""
        self._recorder.close()


class EventDoor:
    """Takes claims from any thread and writes them from one.

    `answered` is called after all answers of a group were given. A door that is `own` takes
    floe's own reports: its caller has the catalog's database, not a token.
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
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
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
        """Hand in claims; the answer comes after their commit: what was wrong, by place."""
        with self._lock:
            if self._closed:
                raise DoorClosedError
            if self._waiting and self._waiting + len(claims) > MOST_WAITING:
                raise DoorBusyError
            self._waiting += len(claims)
        waiting = Waiting(claims, Future() if answer is None else answer)
        self._queue.put(waiting)
        return waiting.answer

    def close(self) -> None:
        """Write what waits, and stop."""
        with self._lock:
            self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._serve()
        finally:
            # Whatever ended it: nobody may wait for an answer that cannot come.
            with self._lock:
                self._closed = True
            self._turn_away()
            self._writer.close()

    def _turn_away(self) -> None:
        while not self._queue.empty():
            waiting = self._queue.get()
            if waiting is not None:
                waiting.answer.set_exception(DoorClosedError())
        self._answered()

    @property
    def is_open(self) -> bool:
        """Whether events are taken: false once it was closed, or broke."""
        return not self._closed

    def _serve(self) -> None:
        self._writer.start()
        closing = False
        while not closing:
            group, closing = self._take()
            if group:
                self._write(group)
            self._writer.rest(quiet=not group)

    def _take(self) -> tuple[list[Waiting], bool]:
        """Take what waits, up to a group's size, without waiting for more.

        Nothing at all comes back in a quiet moment, or at the end.
        """
        group: list[Waiting] = []
        count = 0
        try:
            taken = self._queue.get(timeout=QUIET_SECONDS)
            while taken is not None:
                group.append(taken)
                count += len(taken.claims)
                if count >= MOST_IN_GROUP:
                    return group, False
                taken = self._queue.get_nowait()
        except queue.Empty:
            return group, False
        # What stood before the end is written first; then the end is met again.
        if group:
            self._queue.put(None)
            return group, False
        return group, True

    def _write(self, group: Sequence[Waiting]) -> None:
        try:
            self._writer.write(group)
        finally:
            with self._lock:
                self._waiting -= sum(len(waiting.claims) for waiting in group)
            self._answered()


def _answer(group: Iterable[Waiting], wrong: Mapping[int, FloeError]) -> None:
    start = 0
    for waiting in group:
        end = start + len(waiting.claims)
        waiting.answer.set_result(
            {place - start: error for place, error in wrong.items() if start <= place < end}
        )
        start = end
