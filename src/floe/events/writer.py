"""The event door in a process of its own.

Whoever reads requests and whoever writes events would otherwise share one interpreter, of which
only one at a time can run. Claims go over a socket as the reader made them, and what became of
them comes back. The writer ends when the reader does: its socket closes then, however that ended.
"""

import gc
import os
import select
import signal
import socket
import struct
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

import msgspec

from floe.catalog import open_catalog
from floe.catalog.recording import CatalogUnavailableError, EventClaim, UnstorableClaimError
from floe.errors import FloeError
from floe.events.ingest import (
    MOST_IN_GROUP,
    QUIET_SECONDS,
    DoorBusyError,
    DoorClosedError,
    GroupWriter,
    Waiting,
)
from floe.spec.dates import DEFAULT_RULES, DateRules

LENGTH = struct.Struct("!I")
MOST_AT_ONCE = 1 << 20
COLLECTED_AFTER = (20_000, 20, 20)
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
Request = tuple[int, list[EventClaim]]
Outcome = dict[int, Fault] | Fault
Outcomes = list[tuple[int, Outcome]]
_encode = msgspec.msgpack.Encoder().encode
_requests: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_outcomes: msgspec.msgpack.Decoder[Outcomes] = msgspec.msgpack.Decoder(Outcomes)


@dataclass(frozen=True)
class Writer:
    """A process that writes events, and the line to it."""

    pid: int
    line: socket.socket


def fork_writer(url: str, *others: socket.socket, dates: DateRules = DEFAULT_RULES) -> Writer:
    """Make a process that writes to a catalog once the first frame tells it to, an empty one.

    To be called while there are no threads and no connections, which it would share. `others` are
    sockets that are not its own.
    """
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _be_writer(url, theirs, (ours, *others), dates)
    theirs.close()
    return Writer(pid, ours)


def let_collector_rest() -> None:
    """Go on with a collector that looks seldom, which a start may have put off altogether.

    All that is loaded by now will stay. Events are many small things in no circle: they go as soon
    as nobody needs them, and to look at them again and again would take a tenth of the time.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)
    gc.enable()


def frame(content: object) -> bytes:
    """What is sent, with its length before it."""
    packed = _encode(content)
    return LENGTH.pack(len(packed)) + packed


def read_request(packed: bytes) -> Request:
    """Claims that were sent, of a frame without its length."""
    return _requests.decode(packed)


def read_outcomes(packed: bytes) -> Outcomes:
    """What became of claims, of a frame without its length."""
    return _outcomes.decode(packed)


def error_of(fault: Fault) -> FloeError:
    """The error that a fault stands for."""
    kind, reason = fault
    return ERRORS[kind](reason)


def _fault_of(error: BaseException) -> Fault:
    for place, kind in enumerate(KINDS):
        if isinstance(error, kind):
            return place, getattr(error, "reason", "")
    return KINDS.index(CatalogUnavailableError), f"{type(error).__name__}: {error}"


def _be_writer(
    url: str, line: socket.socket, others: Sequence[socket.socket], dates: DateRules
) -> NoReturn:
    status = 1
    try:
        for other in others:
            other.close()
        # Ctrl-C reaches it too, but only the reader knows when nobody waits any more.
        for stop in (signal.SIGINT, signal.SIGTERM):
            signal.signal(stop, signal.SIG_IGN)
        let_collector_rest()
        _serve(url, line, dates)
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here, and says why
        traceback.print_exc()
    finally:
        # What the reader has open is not this process's to clean up.
        os._exit(status)


def _serve(url: str, line: socket.socket, dates: DateRules) -> None:
    if len(line.recv(LENGTH.size, socket.MSG_WAITALL)) < LENGTH.size:
        return
    catalog, requests = open_catalog(url), _Requests(line)
    writer = GroupWriter(catalog, dates)
    try:
        writer.start()
        while (group := requests.take()) is not None:
            _write(writer, group, line)
            writer.rest(quiet=not group)
        # Who waits for nothing any more may as well leave the search complete.
        writer.rest(quiet=True)
    finally:
        writer.close()
        catalog.close()


def _write(writer: GroupWriter, requests: Sequence[Request], line: socket.socket) -> None:
    """Write what has come, a group at a time, and send back what became of each."""
    start = 0
    while start < len(requests):
        end, count = start, 0
        while end < len(requests) and count < MOST_IN_GROUP:
            count += len(requests[end][1])
            end += 1
        outcomes: Outcomes = []
        writer.write(
            [Waiting(claims, _Ticket(number, outcomes)) for number, claims in requests[start:end]]
        )
        # Once the reader is gone nobody waits any more. What was written stays.
        with suppress(OSError):
            line.sendall(frame(outcomes))
        start = end


class _Requests:
    """What comes over the line."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._frames = Frames()
        self._ready = select.poll()
        self._ready.register(line, select.POLLIN)

    def take(self) -> list[Request] | None:
        """Take all that has come; nothing in a quiet moment, None at the end.

        A request that was cut off in the middle was never answered.
        """
        if not self._ready.poll(QUIET_SECONDS * 1000):
            return []
        try:
            data = self._line.recv(MOST_AT_ONCE)
        except ConnectionResetError:
            # The reader was killed, with answers on their way to it.
            return None
        if not data:
            return None
        return [read_request(packed) for packed in self._frames.take(data)]


class Frames:
    """Puts together what a socket hands out in pieces."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def take(self, data: bytes) -> list[bytes]:
        """The frames that are whole by now."""
        rest, taken, whole = self._rest, 0, []
        rest += data
        while len(rest) - taken >= LENGTH.size:
            (length,) = LENGTH.unpack_from(rest, taken)
            start = taken + LENGTH.size
            if len(rest) - start < length:
                break
            taken = start + length
            whole.append(bytes(rest[start:taken]))
        del rest[:taken]
        return whole


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
