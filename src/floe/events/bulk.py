"""Load a file of events straight into the catalog, one a line, and go on where it stopped.

The place in the file is committed with the events before it. So a load that is killed at any
moment has lost nothing and does nothing twice, and the same file again is known by its content.
"""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from io import BufferedIOBase, BufferedReader
from pathlib import Path

from floe import clock
from floe.catalog import Catalog
from floe.catalog.events import ImportProgress, ImportRecorder, begin_import, move_import
from floe.catalog.recording import (
    EventClaim,
    EventFailedError,
    index_forgotten,
    index_recorded,
    record_group,
)
from floe.errors import FloeError
from floe.events.claims import RETENTION
from floe.events.errors import BadEventError
from floe.events.ingest import read_claim
from floe.spec.dates import DEFAULT_RULES, DateRules

EVENTS_IN_GROUP = 1_000
BYTES_IN_GROUP = 8 * 1024 * 1024
LONGEST_LINE = 16 * 1024 * 1024
CHUNK = 1024 * 1024
GZIP_MAGIC = b"\x1f\x8b"


class EventFileError(FloeError):
    """A file of events cannot be read to its end."""

    exit_code = 2

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}. What came before is imported.")


@dataclass(frozen=True)
class Rejected:
    """A line that is no event that the catalog takes, and why."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True)
class Watcher:
    """Whom an import keeps informed: of the bytes of the file it is past, and of bad lines."""

    on_bytes: Callable[[int], None] = lambda _: None
    on_reject: Callable[[Rejected], None] = lambda _: None


@dataclass(frozen=True)
class ImportReport:
    """What an import came to, all its parts together."""

    lines: int
    rejected: int
    resumed_at: int
    lines_now: int

    @property
    def was_done(self) -> bool:
        return self.resumed_at > 0 and self.lines_now == 0


@dataclass(frozen=True)
class _Line:
    number: int
    end: int
    # None when it is too long to be read.
    body: bytes | None


def import_events(
    catalog: Catalog,
    path: Path,
    *,
    historical: bool = True,
    retention: timedelta = RETENTION,
    dates: DateRules = DEFAULT_RULES,
    started_by: str | None = None,
    watcher: Watcher | None = None,
) -> ImportReport:
    """Load what is not loaded yet of a file.

    Historical events, and those that are older than events are kept, fill history and trigger
    nothing.
    """
    read = partial(read_claim, historical=historical, retention=retention)
    source = identify(path)
    with catalog.writing() as session:
        done = begin_import(session, source, started_by)
    # What an import that was stopped has loaded may not be in the search yet.
    index_forgotten(catalog)
    with closing(_Load(catalog, source, done, watcher or Watcher(), dates)) as load:
        with _opened(path) as (raw, lines):
            for group in _groups(_lines(path, lines, done)):
                load.take(group, read)
                load.watcher.on_bytes(raw.tell())
        if load.at != done:
            load.finish()
    return ImportReport(load.at.lines, load.at.rejected, done.lines, load.at.lines - done.lines)


def identify(path: Path) -> str:
    """Name a file by its content: moved it is the same, with one byte changed it is another."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32))
    return f"blake2b:{digest.hexdigest()}"


class _Load:
    """One import under way."""

    def __init__(
        self,
        catalog: Catalog,
        source: str,
        done: ImportProgress,
        watcher: Watcher,
        dates: DateRules,
    ) -> None:
        self.at = done
        self.watcher = watcher
        self._catalog, self._source = catalog, source
        self._recorder = ImportRecorder(catalog.store, source, dates)

    def take(self, lines: Sequence[_Line], read: Callable[[bytes], EventClaim]) -> None:
        """Record the events of some lines; report those that are none."""
        claims: list[EventClaim] = []
        numbers: list[int] = []
        rejected = self.at.rejected
        for line in lines:
            try:
                claim = _read(line, read)
            except (BadEventError, EventFailedError) as error:
                rejected += 1
                self.watcher.on_reject(Rejected(line.number, str(error)))
                continue
            if claim is not None:
                claims.append(claim)
                numbers.append(line.number)
                self._recorder.expect(claim, ImportProgress(line.number, line.end, rejected))
        refused = self._record(claims)
        for place, wrong in sorted(refused.items()):
            self.watcher.on_reject(Rejected(numbers[place], str(wrong)))
        self.at = ImportProgress(lines[-1].number, lines[-1].end, rejected + len(refused))
        self._recorder.clear()

    def finish(self) -> None:
        """Keep the place of the end, behind which there are no lines; let the search know."""
        with self._catalog.writing() as session:
            move_import(session, self._source, self.at)
        index_recorded(self._catalog, self._recorder)

    def close(self) -> None:
        """Give back what the load holds."""
        self._recorder.close()

    def _record(self, claims: Sequence[EventClaim]) -> dict[int, FloeError]:
        if not claims:
            return {}
        return record_group(self._catalog, self._recorder, claims, clock.now())


def _read(line: _Line, read: Callable[[bytes], EventClaim]) -> EventClaim | None:
    if line.body is None:
        raise BadEventError(f"It is longer than {LONGEST_LINE:,} bytes.")
    return read(line.body) if line.body else None


def _groups(lines: Iterator[_Line]) -> Iterator[list[_Line]]:
    group: list[_Line] = []
    size = 0
    try:
        for line in lines:
            group.append(line)
            size += len(line.body or b"")
            if len(group) >= EVENTS_IN_GROUP or size >= BYTES_IN_GROUP:
                yield group
                group, size = [], 0
    except EventFileError:
        # What was read before the damage is good.
        if group:
            yield group
        raise
    if group:
        yield group


def _lines(path: Path, stream: BufferedIOBase, done: ImportProgress) -> Iterator[_Line]:
    number, end = done.lines, done.bytes
    try:
        stream.seek(end)
        while body := stream.readline(LONGEST_LINE):
            number, end = number + 1, end + len(body)
            if len(body) == LONGEST_LINE and not body.endswith(b"\n"):
                end += _skip_line(stream)
                yield _Line(number, end, None)
            else:
                yield _Line(number, end, body.strip(b"\r\n"))
    except (OSError, EOFError, zlib.error) as error:
        raise EventFileError(path, f"after line {number} it is damaged ({error})") from error


def _skip_line(stream: BufferedIOBase) -> int:
    skipped = 0
    while part := stream.readline(CHUNK):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BufferedReader, BufferedIOBase]]:
    """Open a file, packed or plain: the file itself, and the stream of its lines."""
    with path.open("rb") as raw:
        packed = raw.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        raw.seek(0)
        if packed:
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield raw, unpacked
        else:
            yield raw, raw
