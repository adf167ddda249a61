"""Messages that wait on disk: appended in order by any process of the host, read in that order.

The spool of a recipient is a row of files, one message a line. Messages are added to the newest
and taken from the oldest, whose `.done` holds how far it was delivered. A line counts when it is
whole and synced; the next writer cuts off what a killed process left half-written. After a crash
`.done` may lag behind, never run ahead: then some messages are sent twice, and the server
recognises them by their bytes.
"""

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from floe import clock
from floe.client.locks import locked, try_locked
from floe.errors import FloeError

RECIPIENT = "recipient"
OTHERS = 0o077
SEGMENT_BYTES = 8 * 1024 * 1024
READ_BYTES = 1024 * 1024


class SpoolFullError(FloeError):
    """More waits than FLOE_SPOOL_LIMIT allows."""

    def __init__(self, folder: Path, limit: int) -> None:
        super().__init__(
            f"{folder} holds {limit:,} bytes of undelivered messages, which is all it may. "
            "See why with: floe events deliver. FLOE_SPOOL_LIMIT allows more."
        )


class Queue(NamedTuple):
    """Messages that wait for one recipient."""

    recipient: str
    waiting: int


class Ticket(NamedTuple):
    """Where a message stands in the spool."""

    segment: Path
    end: int


class Waiting(NamedTuple):
    """The next messages to deliver, and where each ends."""

    segment: Path
    bodies: Sequence[bytes]
    ends: Sequence[int]


class Spool:
    """The messages of this host that wait for delivery to one recipient.

    Each recipient has a folder of its own, so no message is ever delivered to another catalog
    than the one that it was written for.
    """

    def __init__(self, base: Path, recipient: str, limit: int) -> None:
        self._base, self._recipient = base, recipient
        self.folder = base / _folder_name(recipient)
        self._limit = limit

    def others(self) -> list[Queue]:
        """Count what waits here for other recipients."""
        queues = []
        for file in sorted(self._base.glob(f"*/{RECIPIENT}")):
            recipient = file.read_text(encoding="utf-8")
            waiting = Spool(self._base, recipient, self._limit).count_waiting()
            if waiting and recipient != self._recipient:
                queues.append(Queue(recipient, waiting))
        return queues

    def append(self, body: bytes) -> Ticket:
        """Add a message; it is on the disk when this returns. Raise OSError when it cannot be."""
        self._make_folder()
        with self._adding():
            segments = self._segments()
            newest = segments[-1] if segments else None
            if newest is not None:
                _cut_torn_end(newest)
            if self._bytes_waiting(segments) + len(body) >= self._limit:
                raise SpoolFullError(self.folder, self._limit)
            if newest is None or newest.stat().st_size >= SEGMENT_BYTES:
                newest = self._next_segment(newest)
            return Ticket(newest, _append_line(newest, body))

    def next(self, most: int) -> Waiting | None:
        """Return the messages to deliver next. Only who holds `delivering` may ask."""
        for segment in self._segments():
            start = _done(segment)
            bodies, ends = _lines(segment, start, most)
            if bodies:
                return Waiting(segment, bodies, ends)
            self._remove(segment)
        return None

    def advance(self, segment: Path, end: int) -> None:
        """Remember that messages up to here need not be sent again."""
        _replace(_done_file(segment), str(end).encode())
        if end >= segment.stat().st_size:
            self._remove(segment)

    def refuse(self, body: bytes, reason: str) -> None:
        """Put a message that the server will never take aside, with the reason."""
        folder = self.folder / "refused"
        folder.mkdir(mode=0o700, exist_ok=True)
        said = json.dumps(reason).encode()
        _replace(self._refusal(body), b'{"reason":%b,\n"message":%b}\n' % (said, body), sync=True)
        _sync_folder(folder)

    def is_refused(self, body: bytes) -> bool:
        """Say whether a message was put aside."""
        return self._refusal(body).exists()

    def reason_of(self, body: bytes) -> str:
        """Return why a message was put aside."""
        return str(json.loads(self._refusal(body).read_bytes())["reason"])

    def is_done(self, ticket: Ticket) -> bool:
        """Say whether a message was delivered or put aside, by whichever process."""
        return not ticket.segment.exists() or _done(ticket.segment) >= ticket.end

    def bytes_waiting(self) -> int:
        """Return how much waits for delivery."""
        return self._bytes_waiting(self._segments())

    def count_waiting(self) -> int:
        """Count the messages that wait for delivery."""
        return sum(_count_lines(segment, _done(segment)) for segment in self._segments())

    def count_refused(self) -> int:
        """Count the messages that were put aside."""
        return sum(1 for _ in (self.folder / "refused").glob("*.json"))

    @contextmanager
    def delivering(self, *, wait: bool) -> Iterator[bool]:
        """Be the one process that delivers; without waiting, say whether that could be had."""
        self._make_folder()
        path = self.folder / "deliver.lock"
        if wait:
            with locked(path):
                yield True
        else:
            with try_locked(path) as got:
                yield got

    def _make_folder(self) -> None:
        if not (self.folder / RECIPIENT).is_file():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(self.folder / RECIPIENT, self._recipient.encode(), sync=True)
            _sync_folder(self.folder)
            _sync_folder(self._base)
        elif self.folder.stat().st_mode & OTHERS:
            # Messages hold the names of data and people. An older floe, or a copy, left it open.
            for path in (self.folder, *self.folder.rglob("*")):
                with suppress(FileNotFoundError, PermissionError):
                    path.chmod(path.stat().st_mode & 0o700)

    @contextmanager
    def _adding(self) -> Iterator[None]:
        with locked(self.folder / "append.lock"):
            yield

    def _segments(self) -> list[Path]:
        return sorted(self.folder.glob("*.ndjson"))

    def _next_segment(self, newest: Path | None) -> Path:
        """Name a file that sorts behind all others, and that none was called before."""
        number = int(clock.now().timestamp() * 1_000_000)
        if newest is not None:
            number = max(number, int(newest.stem) + 1)
        segment = self.folder / f"{number:020d}.ndjson"
        _done_file(segment).unlink(missing_ok=True)
        os.close(os.open(segment, os.O_WRONLY | os.O_CREAT, 0o600))
        _sync_folder(self.folder)
        return segment

    def _bytes_waiting(self, segments: Sequence[Path]) -> int:
        total = 0
        for segment in segments:
            with suppress(FileNotFoundError):
                total += segment.stat().st_size - _done(segment)
        return total

    def _remove(self, segment: Path) -> None:
        """Drop a file of which every line is done. Nobody may add one at that moment."""
        with self._adding():
            _cut_torn_end(segment)
            if _done(segment) >= segment.stat().st_size:
                segment.unlink()
                _done_file(segment).unlink(missing_ok=True)
                for left_behind in self.folder.glob(f"{segment.stem}.*.part"):
                    left_behind.unlink(missing_ok=True)

    def _refusal(self, body: bytes) -> Path:
        import hashlib

        return self.folder / "refused" / f"{hashlib.sha256(body).hexdigest()[:32]}.json"


def _folder_name(recipient: str) -> str:
    """Name the folder of a recipient: readable, and different for each."""
    import hashlib

    readable = "".join(sign if sign.isalnum() or sign == "." else "-" for sign in recipient)
    return f"{readable[-40:].lstrip('-')}-{hashlib.sha256(recipient.encode()).hexdigest()[:12]}"


def _append_line(segment: Path, body: bytes) -> int:
    number = os.open(segment, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        before = os.fstat(number).st_size
        try:
            _write(number, body + b"\n")
            os.fsync(number)
        except OSError:
            # A full disk may have taken a part.
            os.ftruncate(number, before)
            raise
        return before + len(body) + 1
    finally:
        os.close(number)


def _cut_torn_end(segment: Path) -> None:
    with segment.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.truncate(_whole_end(segment))


def _whole_end(segment: Path) -> int:
    """Where the last whole line of a file ends."""
    end = 0
    with segment.open("rb") as file:
        for line in file:
            end += len(line) if line.endswith(b"\n") else 0
    return end


def _lines(segment: Path, start: int, most: int) -> tuple[list[bytes], list[int]]:
    bodies: list[bytes] = []
    ends: list[int] = []
    with segment.open("rb") as file:
        end = file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                break
            end += len(line)
            bodies.append(line[:-1])
            ends.append(end)
            if len(bodies) >= most or end - start >= READ_BYTES:
                break
    return bodies, ends


def _count_lines(segment: Path, start: int) -> int:
    try:
        with segment.open("rb") as file:
            file.seek(start)
            return sum(line.endswith(b"\n") for line in file)
    except FileNotFoundError:
        return 0


def _done_file(segment: Path) -> Path:
    return segment.with_suffix(".done")


def _done(segment: Path) -> int:
    """How far a file is delivered. What cannot be read counts from the start: twice is no harm."""
    try:
        done = int(_done_file(segment).read_bytes())
        size = segment.stat().st_size
    except (OSError, ValueError):
        return 0
    return done if 0 <= done <= size else 0


def _replace(path: Path, content: bytes, *, sync: bool = False) -> None:
    """Write a file so that it is there as a whole or not at all."""
    beside = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part")
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        _write(number, content)
        if sync:
            os.fsync(number)
    finally:
        os.close(number)
    beside.replace(path)


def _write(number: int, content: bytes) -> None:
    while content:
        content = content[os.write(number, content) :]


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
