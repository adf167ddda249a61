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
    MOST_IN_GROUP,
    QUIET_SECONDS,
    DoorBusyError,
    DoorClosedError,
    GroupWriter,
    Waiting,
)
from floe.spec.dates import DateRules

LENGTH = struct.Struct("!I")
MOST_AT_ONCE = 1 << 20
COLLECTED_AFTER = (20_000, 20, 20)
# How an error travels: its place in this list, and its reason if it has one.
KINDS: tuple[Callable[..., FloeError], ...] = (
    CatalogUnavailableError,
    UnstorableClaimError,
    EventFailedError,
    DoorBusyError,
    DoorClosedError,
)
Fault = tuple[int, str]
# Claims under a ticket; and what became of them: what was wrong by place, or with all of them.
Request = tuple[int, list[EventClaim]]
Outcome = dict[int, Fault] | Fault
Outcomes = list[tuple[int, Outcome]]
READY: Outcomes = []
STDIN = 0
_encode = msgspec.msgpack.Encoder().encode
_requests: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_outcomes: msgspec.msgpack.Decoder[Outcomes] = msgspec.msgpack.Decoder(Outcomes)


class Orders(msgspec.Struct, array_like=True, frozen=True):
    """What a writer has to know: the catalog, and how dates are found in names."""

    url: str
    date_patterns: list[str]

    def __repr__(self) -> str:
        # The URL may hold a password.
        return "Orders(…)"


@dataclass(frozen=True)
class Writer:
    """A process that writes events to a catalog, and the socket to it.

    The first frame brings its orders. It answers with an empty list once it can write.
    """

    pid: int
    line: socket.socket
    orders: Orders


def fork_writer(orders: Orders, *others: socket.socket) -> Writer:
    """Fork a process that writes to a catalog.

    To be called while there are no threads and no connections, which it would share. `others` are
    sockets that are not its own.
    """
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _be_writer(theirs, (ours, *others))
    theirs.close()
    return Writer(pid, ours, orders)


def spawn_writer(orders: Orders) -> Writer:
    """Start a new process that writes to a catalog, from a process that has threads.

    It takes longer than a fork, because the new process loads its modules first.
    """
    ours, theirs = socket.socketpair()
    try:
        # A group of its own, so that Ctrl-C in the terminal does not reach it while it starts.
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
    return Writer(pid, ours, orders)


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
    return KINDS[kind](reason) if reason else KINDS[kind]()


def _fault_of(error: BaseException) -> Fault:
    if type(error) in KINDS:
        return KINDS.index(type(error)), getattr(error, "reason", "")
    return KINDS.index(CatalogUnavailableError), f"{type(error).__name__}: {error}"


def _be_writer(line: socket.socket, others: Sequence[socket.socket] = ()) -> NoReturn:
    status = 1
    try:
        for other in others:
            other.close()
        # Ctrl-C reaches it too, but only the reader knows when nobody waits any more.
        for stop in (signal.SIGINT, signal.SIGTERM):
            signal.signal(stop, signal.SIG_IGN)
        let_collector_rest()
        _serve(line)
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here, and says why
        traceback.print_exc()
    finally:
        # What the reader has open is not this process's to clean up.
        os._exit(status)


def _serve(line: socket.socket) -> None:
    orders = _read_orders(line)
    if orders is None:
        return
    catalog, requests = open_catalog(orders.url), _Requests(line)
    writer = GroupWriter(catalog, DateRules(orders.date_patterns))
    try:
        writer.start()
        with suppress(OSError):
            line.sendall(frame(READY))
        while (group := requests.take()) is not None:
            _write(writer, group, line)
            writer.rest(quiet=not group)
        # Who waits for nothing any more may as well leave the search complete.
        writer.rest(quiet=True)
    finally:
        writer.close()
        catalog.close()


def _read_orders(line: socket.socket) -> Orders | None:
    """The first frame; None if the API ended before it sent one."""
    head = line.recv(LENGTH.size, socket.MSG_WAITALL)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = line.recv(length, socket.MSG_WAITALL)
    return None if len(body) < length else msgspec.msgpack.decode(body, type=Orders)


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


if __name__ == "__main__":
    _be_writer(socket.socket(fileno=STDIN))
