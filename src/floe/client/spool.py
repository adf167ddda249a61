"""The spool: a queue of undelivered messages on disk, shared by all processes.

Each recipient has a folder with numbered files (segments), one message a line. Messages are
appended to the newest and delivered from the oldest, whose `.done` file holds the offset delivered
so far. The next writer cuts off an incomplete line that a killed process left. After a crash
`.done` may lag behind but never runs ahead: some messages are then sent twice, and the server
recognises them by their bytes.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from floe import clock
from floe.errors import FloeError

RECIPIENT = "recipient"
OTHERS = 0o077
SEGMENT_BYTES = 8 * 1024 * 1024
READ_BYTES = 1024 * 1024


class SpoolFullError(FloeError):
    """The spool has reached FLOE_SPOOL_LIMIT."""

    def __init__(self, folder: Path, limit: int) -> None:
        super().__init__(
            f"{folder} is full: {limit:,} bytes of undelivered messages. "
            "Deliver them with: floe events deliver. Or increase FLOE_SPOOL_LIMIT."
        )


class Queue(NamedTuple):
    """How many messages are queued for one recipient."""

    recipient: str
    waiting: int


class Ticket(NamedTuple):
    """Position of a message in the spool."""

    segment: Path
    end: int


class Waiting(NamedTuple):
    """The next messages to deliver, and the offset where each ends."""

    segment: Path
    bodies: Sequence[bytes]
    ends: Sequence[int]


class Spool:
    """The queue of undelivered messages for one recipient.

    Each recipient has its own folder, so a message is never delivered to another catalog.
    """

    def __init__(self, base: Path, recipient: str, limit: int) -> None:
        self._base, self._recipient = base, recipient
        self.folder = base / _folder_name(recipient)
        self._limit = limit

    def others(self) -> list[Queue]:
        """Count the messages queued for other recipients."""
        queues = []
        for file in sorted(self._base.glob(f"*/{RECIPIENT}")):
            recipient = file.read_text(encoding="utf-8")
            waiting = Spool(self._base, recipient, self._limit).count_waiting()
            if waiting and recipient != self._recipient:
                queues.append(Queue(recipient, waiting))
        return queues

    def append(self, body: bytes) -> Ticket:
        """Append a message and sync it to disk; raise OSError if that fails."""
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
        """Return the next messages. Call only while holding `delivering`."""
        for segment in self._segments():
            start = _done(segment)
            bodies, ends = _lines(segment, start, most)
            if bodies:
                return Waiting(segment, bodies, ends)
            self._remove(segment)
        return None

    def advance(self, segment: Path, end: int) -> None:
        """Mark messages up to an offset as delivered."""
        _replace(_done_file(segment), str(end).encode())
        if end >= segment.stat().st_size:
            self._remove(segment)

    def refuse(self, body: bytes, reason: str) -> None:
        """Save a refused message and the reason in the folder `refused`."""
        folder = self.folder / "refused"
        folder.mkdir(mode=0o700, exist_ok=True)
        content = b'{"reason":%b,\n"message":%b}\n' % (json.dumps(reason).encode(), body)
        _replace(self._refusal(body), content, sync=True)
        _sync_folder(folder)

    def is_refused(self, body: bytes) -> bool:
        return self._refusal(body).exists()

    def reason_of(self, body: bytes) -> str:
        """Return why a message was refused."""
        return str(json.loads(self._refusal(body).read_bytes())["reason"])

    def is_done(self, ticket: Ticket) -> bool:
        """Return whether any process has delivered the message, or it was refused."""
        return not ticket.segment.exists() or _done(ticket.segment) >= ticket.end

    def bytes_waiting(self) -> int:
        return self._bytes_waiting(self._segments())

    def count_waiting(self) -> int:
        return sum(_count_lines(segment, _done(segment)) for segment in self._segments())

    def count_refused(self) -> int:
        return sum(1 for _ in (self.folder / "refused").glob("*.json"))

    @contextmanager
    def delivering(self, *, wait: bool) -> Iterator[bool]:
        """Hold the lock for delivery; without wait, yield whether it was free."""
        self._make_folder()
        path = self.folder / "deliver.lock"
        if wait:
            with locked(path):
                yield True
        else:
            with try_locked(path) as acquired:
                yield acquired

    def _make_folder(self) -> None:
        if not (self.folder / RECIPIENT).is_file():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(self.folder / RECIPIENT, self._recipient.encode(), sync=True)
            _sync_folder(self.folder)
            _sync_folder(self._base)
        elif self.folder.stat().st_mode & OTHERS:
            # Messages contain names of data and people; close a folder that others can read.
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
        """Create a segment with a new name that sorts after all others."""
        microseconds = int(clock.now().timestamp() * 1_000_000)
        if newest is not None:
            microseconds = max(microseconds, int(newest.stem) + 1)
        segment = self.folder / f"{microseconds:020d}.ndjson"
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
        """Delete a segment if every line was delivered; blocks appends meanwhile."""
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
    """Return a readable, unique folder name for a recipient."""
    import hashlib

    readable = "".join(char if char.isalnum() or char == "." else "-" for char in recipient)
    return f"{readable[-40:].lstrip('-')}-{hashlib.sha256(recipient.encode()).hexdigest()[:12]}"


def _append_line(segment: Path, body: bytes) -> int:
    descriptor = os.open(segment, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        before = os.fstat(descriptor).st_size
        try:
            _write(descriptor, body + b"\n")
            os.fsync(descriptor)
        except OSError:
            # The disk may be full after part of the line.
            os.ftruncate(descriptor, before)
            raise
        return before + len(body) + 1
    finally:
        os.close(descriptor)


def _cut_torn_end(segment: Path) -> None:
    with segment.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.truncate(_whole_end(segment))


def _whole_end(segment: Path) -> int:
    """Return the offset where the last complete line ends."""
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
    """Return the offset delivered so far; 0 if unknown: sending twice is harmless."""
    try:
        done = int(_done_file(segment).read_bytes())
        size = segment.stat().st_size
    except (OSError, ValueError):
        return 0
    return done if 0 <= done <= size else 0


def _replace(path: Path, content: bytes, *, sync: bool = False) -> None:
    """Write a file atomically."""
    draft = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        _write(descriptor, content)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    draft.replace(path)


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for a file lock and hold it. It is released when its holder dies."""
    with _opened(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextmanager
def try_locked(path: Path) -> Iterator[bool]:
    """Try to hold a file lock; yield whether it was free."""
    with _opened(path) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    # Each open file is a separate holder, so threads exclude each other too.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
