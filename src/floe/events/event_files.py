"""Import and export files of events, one event per line.

The position in the file is committed together with the events before it. So an import that is
killed loses nothing and repeats nothing, and a file is identified by its content."""

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
from typing import Protocol

from floe import clock
from floe.catalog import Catalog
from floe.catalog.events import (
    ImportProgress,
    ImportRecorder,
    begin_import,
    move_import,
    stream_bodies,
)
from floe.catalog.recording import (
    EventClaim,
    EventFailedError,
    index_missed,
    index_recorded,
    record_group,
)
from floe.catalog.run_events import EventFilter
from floe.errors import FloeError
from floe.events.claim_reader import RETENTION
from floe.events.errors import BadEventError
from floe.events.ingest import read_claim
from floe.events.openlineage import decompress
from floe.spec.dates import DEFAULT_RULES, DateRules

EVENTS_IN_GROUP = 1_000
BYTES_IN_GROUP = 8 * 1024 * 1024
MAX_LINE = 16 * 1024 * 1024
CHUNK = 1024 * 1024
GZIP_MAGIC = b"\x1f\x8b"


class EventFileError(FloeError):
    """An event file is damaged."""

    exit_code = 2

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"Cannot read {path}: {reason}. All events before that were imported.")


@dataclass(frozen=True)
class Rejected:
    """A rejected line, and why."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True)
class Watcher:
    """Callbacks of an import: bytes read so far, and rejected lines."""

    on_bytes: Callable[[int], None] = lambda _: None
    on_reject: Callable[[Rejected], None] = lambda _: None


@dataclass(frozen=True)
class ImportReport:
    """The result of an import, including earlier interrupted attempts."""

    lines: int
    rejected: int
    resumed_at: int
    lines_now: int

    @property
    def was_done(self) -> bool:
        return self.resumed_at > 0 and self.lines_now == 0


@dataclass(frozen=True)
class _Line:
    line_number: int
    end: int
    # None if the line is too long.
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
    """Import the lines of a file that are not imported yet.

    Historical events, and events older than the retention, trigger nothing.
    """
    read = partial(read_claim, historical=historical, retention=retention)
    source = identify(path)
    with catalog.writing() as session:
        done = begin_import(session, source, started_by)
    # Datasets of an interrupted import may not be in the search yet.
    index_missed(catalog)
    with closing(_Import(catalog, source, done, watcher or Watcher(), dates)) as running:
        with _opened(path) as (raw, lines):
            for group in _groups(_lines(path, lines, done)):
                running.record(group, read)
                running.watcher.on_bytes(raw.tell())
        if running.at != done:
            running.finish()
    return ImportReport(
        running.at.lines, running.at.rejected, done.lines, running.at.lines - done.lines
    )


def identify(path: Path) -> str:
    """Identify a file by a hash of its content, wherever it is."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32))
    return f"blake2b:{digest.hexdigest()}"


class _Import:
    """A running import."""

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

    def record(self, lines: Sequence[_Line], read: Callable[[bytes], EventClaim]) -> None:
        """Record the events of some lines; report those that are rejected."""
        claims: list[EventClaim] = []
        line_numbers: list[int] = []
        rejected = self.at.rejected
        for line in lines:
            try:
                claim = _read(line, read)
            except (BadEventError, EventFailedError) as error:
                rejected += 1
                self.watcher.on_reject(Rejected(line.line_number, str(error)))
                continue
            if claim is not None:
                claims.append(claim)
                line_numbers.append(line.line_number)
                self._recorder.expect(claim, ImportProgress(line.line_number, line.end, rejected))
        errors = self._record(claims)
        for index, failure in sorted(errors.items()):
            self.watcher.on_reject(Rejected(line_numbers[index], str(failure)))
        self.at = ImportProgress(lines[-1].line_number, lines[-1].end, rejected + len(errors))
        self._recorder.clear()

    def finish(self) -> None:
        """Store the final position, and index the new datasets for the search."""
        with self._catalog.writing() as session:
            move_import(session, self._source, self.at)
        index_recorded(self._catalog, self._recorder)

    def close(self) -> None:
        """Close the recorder."""
        self._recorder.close()

    def _record(self, claims: Sequence[EventClaim]) -> dict[int, FloeError]:
        if not claims:
            return {}
        return record_group(self._catalog, self._recorder, claims, clock.now())


def _read(line: _Line, read: Callable[[bytes], EventClaim]) -> EventClaim | None:
    if line.body is None:
        raise BadEventError(f"The line is longer than {MAX_LINE:,} bytes.")
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
        # The lines before the damage are valid.
        if group:
            yield group
        raise
    if group:
        yield group


def _lines(path: Path, stream: BufferedIOBase, done: ImportProgress) -> Iterator[_Line]:
    line_number, end = done.lines, done.bytes
    try:
        stream.seek(end)
        while body := stream.readline(MAX_LINE):
            line_number, end = line_number + 1, end + len(body)
            if len(body) == MAX_LINE and not body.endswith(b"\n"):
                end += _skip_line(stream)
                yield _Line(line_number, end, None)
            else:
                yield _Line(line_number, end, body.strip(b"\r\n"))
    except (OSError, EOFError, zlib.error) as error:
        raise EventFileError(path, f"damaged after line {line_number} ({error})") from error


def _skip_line(stream: BufferedIOBase) -> int:
    skipped = 0
    while part := stream.readline(CHUNK):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BufferedReader, BufferedIOBase]]:
    """Open a plain or gzip file; yield the file itself and the stream of its lines."""
    with path.open("rb") as raw:
        is_gzip = raw.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        raw.seek(0)
        if is_gzip:
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield raw, unpacked
        else:
            yield raw, raw


_LINE_BREAKS_TO_BLANKS = bytes.maketrans(b"\r\n", b"  ")


class Sink(Protocol):
    """A writable binary file, plain or compressed."""

    def write(self, content: bytes, /) -> int:
        """Write bytes."""


@dataclass
class ExportReport:
    """Number of events written, and of those whose lines were joined into one."""

    events: int = 0
    joined: int = 0


def export_events(catalog: Catalog, wanted: EventFilter, out: Sink) -> ExportReport:
    """Write the bodies of stored events, one per line, ordered by time.

    The line breaks of a multi-line body become blanks. JSON allows line breaks only between
    values, where a blank means the same.
    """
    report = ExportReport()
    with catalog.reading() as session:
        for stored in stream_bodies(session, wanted):
            body = decompress(stored.payload, stored.codec)
            if b"\n" in body or b"\r" in body:
                body = body.translate(_LINE_BREAKS_TO_BLANKS)
                report.joined += 1
            out.write(body + b"\n")
            report.events += 1
    return report
