"""The event door in a process of its own.

Whoever reads requests and whoever writes events would otherwise share one interpreter, of which
only one at a time can run. Claims go over a socket as the reader made them, and what became of
them comes back. The writer ends when the reader does: its socket closes then, however that ended.
"""

import os
import pickle
import signal
import socket
import struct
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, NoReturn

from floe.catalog import Catalog, open_catalog
from floe.catalog.recording import CatalogUnavailableError, EventClaim, UnstorableClaimError
from floe.errors import FloeError
from floe.events.ingest import DoorBusyError, DoorClosedError, EventDoor

LENGTH = struct.Struct("!I")
# How an error travels: its place in this list, and its reason if it has one.
ERRORS: tuple[Callable[[str], FloeError], ...] = (
    CatalogUnavailableError,
    UnstorableClaimError,
    lambda _: DoorBusyError(),
    lambda _: DoorClosedError(),
)
KINDS = (CatalogUnavailableError, UnstorableClaimError, DoorBusyError, DoorClosedError)
Fault = tuple[int, str]
# Claims under a ticket; and what became of them: what was wrong by place, or with all of them.
Request = tuple[int, Sequence[EventClaim]]
Outcome = Mapping[int, Fault] | Fault
Outcomes = list[tuple[int, Outcome]]


@dataclass(frozen=True)
class Writer:
    """A process that writes events, and the line to it."""

    pid: int
    line: socket.socket


def fork_writer(url: str, *others: socket.socket) -> Writer:
    """Make a process that writes to a catalog once the first frame tells it to, an empty one.

    To be called while there are no threads and no connections, which it would share. `others` are
    sockets that are not its own.
    """
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _be_writer(url, theirs, (ours, *others))
    theirs.close()
    return Writer(pid, ours)


def frame(content: object) -> bytes:
    """What is sent, with its length before it."""
    packed = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(packed)) + packed


def unpack(packed: bytes | memoryview) -> Any:
    """What was sent, of a frame without its length."""
    # It comes from the process that this one made, or was made by, and from nobody else.
    return pickle.loads(packed)  # noqa: S301


def error_of(fault: Fault) -> FloeError:
    """The error that a fault stands for."""
    kind, reason = fault
    return ERRORS[kind](reason)


def _fault_of(error: BaseException) -> Fault:
    for place, kind in enumerate(KINDS):
        if isinstance(error, kind):
            return place, getattr(error, "reason", "")
    return KINDS.index(CatalogUnavailableError), f"{type(error).__name__}: {error}"


def _be_writer(url: str, line: socket.socket, others: Sequence[socket.socket]) -> NoReturn:
    status = 1
    try:
        for other in others:
            other.close()
        # Ctrl-C reaches it too, but only the reader knows when nobody waits any more.
        for stop in (signal.SIGINT, signal.SIGTERM):
            signal.signal(stop, signal.SIG_IGN)
        _serve(url, line)
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here, and says why
        traceback.print_exc()
    finally:
        # What the reader has open is not this process's to clean up.
        os._exit(status)


def _serve(url: str, line: socket.socket) -> None:
    requests = line.makefile("rb")
    if _read(requests) is None:
        return
    catalog = open_catalog(url)
    try:
        _Desk(catalog, line).serve(requests)
    finally:
        catalog.close()


def _read(source: IO[bytes]) -> bytes | None:
    """Read a frame; None at the end. A frame that was cut off was never answered for."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    packed = source.read(length)
    return packed if len(packed) == length else None


class _Desk:
    """Hands in what comes over the line, and sends back what became of it."""

    def __init__(self, catalog: Catalog, line: socket.socket) -> None:
        self._line = line
        self._outcomes: Outcomes = []
        self._sending = threading.Lock()
        self._door = EventDoor(catalog, answered=self._send)

    def serve(self, requests: IO[bytes]) -> None:
        try:
            while (packed := _read(requests)) is not None:
                number, claims = unpack(packed)
                self._hand_in(claims, _Ticket(number, self._outcomes))
        finally:
            self._door.close()

    def _hand_in(self, claims: Sequence[EventClaim], ticket: "_Ticket") -> None:
        try:
            self._door.submit(claims, ticket)
        except DoorBusyError as error:
            ticket.set_exception(error)
            self._send()

    def _send(self) -> None:
        with self._sending:
            outcomes, self._outcomes[:] = list(self._outcomes), []
            if not outcomes:
                return
            # Once the reader is gone nobody waits any more. What was written stays.
            with suppress(OSError):
                self._line.sendall(frame(outcomes))


@dataclass(frozen=True)
class _Ticket:
    """An answer that goes back over the line."""

    number: int
    outcomes: Outcomes

    def set_result(self, wrong: Mapping[int, FloeError]) -> None:
        faults = {place: _fault_of(error) for place, error in wrong.items()}
        self.outcomes.append((self.number, faults))

    def set_exception(self, error: BaseException) -> None:
        self.outcomes.append((self.number, _fault_of(error)))
