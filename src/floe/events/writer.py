"""A process that writes events for the API.

Reading requests and writing events in one process would compete for the interpreter lock. Claims
go over a socket to the writer, and their outcomes come back. The writer exits when the reader
does, because the socket closes then, however the reader ended.
"""

import gc
import os
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

import msgspec

from floe.catalog import open_catalog
from floe.catalog.recording import (
    CatalogUnavailableError,
    EventClaim,
    EventFailedError,
    UnstorableClaimError,
)
from floe.errors import FloeError
from floe.events.ingest import (
    IDLE_SECONDS,
    MAX_GROUP,
    DoorBusyError,
    DoorClosedError,
    GroupWriter,
    PendingClaims,
)
from floe.spec.dates import DateRules

LENGTH = struct.Struct("!I")
MAX_RECEIVE = 1 << 20
GC_THRESHOLDS = (20_000, 20, 20)
# An error is sent as its index in this list, and its reason if it has one.
KINDS: tuple[Callable[..., FloeError], ...] = (
    CatalogUnavailableError,
    UnstorableClaimError,
    EventFailedError,
    DoorBusyError,
    DoorClosedError,
)
Fault = tuple[int, str]
# Claims with a ticket number; and their outcome: errors by index, or one error for all.
Request = tuple[int, list[EventClaim]]
Outcome = dict[int, Fault] | Fault
Outcomes = list[tuple[int, Outcome]]
READY: Outcomes = []
STDIN = 0
_encode = msgspec.msgpack.Encoder().encode
_requests: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_outcomes: msgspec.msgpack.Decoder[Outcomes] = msgspec.msgpack.Decoder(Outcomes)


class WriterSettings(msgspec.Struct, array_like=True, frozen=True):
    """Settings of a writer: the catalog, and the patterns of dates in names."""

    url: str
    date_patterns: list[str]

    def __repr__(self) -> str:
        # The URL may contain a password.
        return "WriterSettings(…)"


@dataclass(frozen=True)
class Writer:
    """A process that writes events to a catalog, and the socket to it.

    The first frame contains its settings. It answers with an empty list once it is ready.
    """

    pid: int
    line: socket.socket
    settings: WriterSettings


def fork_writer(settings: WriterSettings, *others: socket.socket) -> Writer:
    """Fork a process that writes to a catalog.

    Call it before there are threads or connections, which the child would share. `others` are
    sockets that the child must close.
    """
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _run_writer(theirs, (ours, *others))
    theirs.close()
    return Writer(pid, ours, settings)


def spawn_writer(settings: WriterSettings) -> Writer:
    """Spawn a process that writes to a catalog, from a process that has threads.

    Slower than a fork, because the new process must import its modules.
    """
    ours, theirs = socket.socketpair()
    try:
        # A separate process group, so that Ctrl-C in the terminal does not reach it at start-up.
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "floe.events.writer"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), STDIN)],
            setpgroup=0,
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return Writer(pid, ours, settings)


def reduce_garbage_collection() -> None:
    """Freeze loaded objects and run the cyclic garbage collector rarely.

    Events are many small objects without cycles: reference counting frees them, and scanning them
    again and again would take a tenth of the time.
    """
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


def frame(content: object) -> bytes:
    """Encode a message with its length as a prefix."""
    packed = _encode(content)
    return LENGTH.pack(len(packed)) + packed


def read_request(packed: bytes) -> Request:
    """Decode claims from a frame without its length."""
    return _requests.decode(packed)


def read_outcomes(packed: bytes) -> Outcomes:
    """Decode outcomes from a frame without its length."""
    return _outcomes.decode(packed)


def error_of(fault: Fault) -> FloeError:
    """Return the error that a fault represents."""
    kind, reason = fault
    return KINDS[kind](reason) if reason else KINDS[kind]()


def _fault_of(error: BaseException) -> Fault:
    if type(error) in KINDS:
        return KINDS.index(type(error)), getattr(error, "reason", "")
    return KINDS.index(CatalogUnavailableError), f"{type(error).__name__}: {error}"


def _run_writer(line: socket.socket, others: Sequence[socket.socket] = ()) -> NoReturn:
    status = 1
    try:
        for other in others:
            other.close()
        # Ctrl-C reaches this process too, but only the reader knows when no sender waits any more.
        for stop in (signal.SIGINT, signal.SIGTERM):
            signal.signal(stop, signal.SIG_IGN)
        reduce_garbage_collection()
        _serve(line)
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here with a traceback
        traceback.print_exc()
    finally:
        # Skip cleanup handlers: open files and connections belong to the reader.
        os._exit(status)


def _serve(line: socket.socket) -> None:
    settings = _read_settings(line)
    if settings is None:
        return
    catalog, requests = open_catalog(settings.url), _Requests(line)
    writer = GroupWriter(catalog, DateRules(settings.date_patterns))
    try:
        writer.start()
        with suppress(OSError):
            line.sendall(frame(READY))
        while (group := requests.take()) is not None:
            _write(writer, group, line)
            writer.maintain(idle=not group)
        # No sender is waiting any more, so complete the search index.
        writer.maintain(idle=True)
    finally:
        writer.close()
        catalog.close()


def _read_settings(line: socket.socket) -> WriterSettings | None:
    """Read the first frame; return None if the reader exited before it sent one."""
    head = line.recv(LENGTH.size, socket.MSG_WAITALL)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = line.recv(length, socket.MSG_WAITALL)
    return None if len(body) < length else msgspec.msgpack.decode(body, type=WriterSettings)


def _write(writer: GroupWriter, requests: Sequence[Request], line: socket.socket) -> None:
    """Write requests in groups, and send back their outcomes."""
    start = 0
    while start < len(requests):
        end, count = start, 0
        while end < len(requests) and count < MAX_GROUP:
            count += len(requests[end][1])
            end += 1
        outcomes: Outcomes = []
        writer.write(
            [
                PendingClaims(claims, _Ticket(ticket, outcomes))
                for ticket, claims in requests[start:end]
            ]
        )
        # If the reader is gone, nobody needs the outcome. The events stay written.
        with suppress(OSError):
            line.sendall(frame(outcomes))
        start = end


class _Requests:
    """Requests from the socket."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._frames = Frames()
        self._ready = select.poll()
        self._ready.register(line, select.POLLIN)

    def take(self) -> list[Request] | None:
        """Return the requests that have arrived: empty when idle, None at the end.

        A truncated request is dropped; it was never answered.
        """
        if not self._ready.poll(IDLE_SECONDS * 1000):
            return []
        try:
            data = self._line.recv(MAX_RECEIVE)
        except ConnectionResetError:
            # The reader was killed while answers were on their way to it.
            return None
        if not data:
            return None
        return [read_request(packed) for packed in self._frames.take(data)]


class Frames:
    """Reassembles frames from the pieces that a socket returns."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def take(self, data: bytes) -> list[bytes]:
        """Add data; return the frames that are complete now."""
        rest, taken, frames = self._rest, 0, []
        rest += data
        while len(rest) - taken >= LENGTH.size:
            (length,) = LENGTH.unpack_from(rest, taken)
            start = taken + LENGTH.size
            if len(rest) - start < length:
                break
            taken = start + length
            frames.append(bytes(rest[start:taken]))
        del rest[:taken]
        return frames


@dataclass(frozen=True)
class _Ticket:
    """An answer that goes back over the socket."""

    ticket: int
    outcomes: Outcomes

    def set_result(self, errors: Mapping[int, FloeError]) -> None:
        faults = {index: _fault_of(error) for index, error in errors.items()}
        self.outcomes.append((self.ticket, faults))

    def set_exception(self, error: BaseException) -> None:
        self.outcomes.append((self.ticket, _fault_of(error)))


if __name__ == "__main__":
    _run_writer(socket.socket(fileno=STDIN))
