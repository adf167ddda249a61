"""Read text files without Spark: count and find records, prepare copies for Spark."""

import bz2
import gzip
import io
import os
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, cast
from uuid import uuid4

from floe.errors import FloeError

ENDINGS = {"gzip": ".gz", "bzip2": ".bz2", "deflate": ".deflate", "zstd": ".zst"}
# Only Spark reads and writes these.
ENDINGS |= {"lz4": ".lz4", "snappy": ".snappy"}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda content: content,
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "bzip2": bz2.compress,
}
# Encodings that Spark's readers accept directly.
PLAIN_ENCODINGS = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})


class UnreadableTextError(FloeError):
    """A text file does not match its declared encoding or compression."""

    def __init__(self, path: Path, reason: str) -> None:
        self.reason = f"{path.name} {reason}"
        super().__init__(f"{path} {reason}")


@dataclass(frozen=True)
class Layout:
    """The layout of a text file: what separates records from everything else."""

    encoding: str = "UTF-8"
    compression: str = "none"
    skip_lines: int = 0
    header: bool = False
    comment: str | None = None
    quote: str = '"'
    escape: str = '"'
    multiline: bool = False
    trailer: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether Spark can read such files without a prepared copy."""
        return self.encoding.lower() in PLAIN_ENCODINGS and not self.skip_lines and not self.trailer

    def is_blank_or_comment(self, line: str) -> bool:
        """Tell whether a line contains no record."""
        return not line.strip() or (self.comment is not None and line.startswith(self.comment))

    def opens_or_closes_quote(self, line: str) -> bool:
        """Tell whether a quoted value with line breaks begins or ends in this line."""
        if not self.multiline:
            return False
        if self.escape != self.quote:
            line = line.replace(self.escape + self.quote, "")
        return line.count(self.quote) % 2 == 1


@contextmanager
def open_bytes(path: Path, compression: str = "none") -> Iterator[IO[bytes]]:
    """Open a file for reading; decompress by file extension, else as declared."""
    with path.open("rb") as raw:
        yield _decompressed(path, raw, _compression(path, compression))


def _compression(path: Path, declared: str) -> str:
    by_ending = {ending: kind for kind, ending in ENDINGS.items()}
    return by_ending.get(path.suffix, declared)


def _decompressed(path: Path, raw: IO[bytes], kind: str) -> IO[bytes]:
    match kind:
        case "none":
            return raw
        case "gzip":
            return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
        case "bzip2":
            return cast("IO[bytes]", bz2.BZ2File(raw))
        case "zstd":
            import zstandard

            stream = zstandard.ZstdDecompressor().stream_reader(raw)
            return cast("IO[bytes]", io.BufferedReader(cast("io.RawIOBase", stream)))
        case "deflate":
            return io.BytesIO(zlib.decompress(raw.read()))
    raise UnreadableTextError(path, f"is compressed with {kind}, which only Spark can read")


@contextmanager
def open_lines(path: Path, layout: Layout, errors: str = "strict") -> Iterator[Iterator[str]]:
    """Open a file as lines, each with its original line break."""
    try:
        with open_bytes(path, layout.compression) as raw:
            encoding = "utf-8-sig" if layout.encoding.lower() in PLAIN_ENCODINGS else None
            yield iter(io.TextIOWrapper(raw, encoding or layout.encoding, errors, newline=""))
    except LookupError:
        reason = f"has an unknown encoding: {layout.encoding}"
        raise UnreadableTextError(path, reason) from None
    except UnicodeDecodeError as error:
        reason = f"is not {layout.encoding}: {error.reason}{_damaged_line(path, layout)}"
        raise UnreadableTextError(path, reason) from error
    except UnicodeError as error:
        raise UnreadableTextError(path, f"is not {layout.encoding}: {error}") from error
    except (EOFError, OSError, zlib.error) as error:
        # An errno means a disk or permission problem, not a damaged file.
        if getattr(error, "errno", None) is not None:
            raise
        raise UnreadableTextError(path, f"cannot be read: {error}") from error


def _damaged_line(path: Path, layout: Layout) -> str:
    """Return ` in line N` for the first invalid line of a UTF-8 file, or nothing."""
    if layout.encoding.lower() not in PLAIN_ENCODINGS:
        return ""
    with open_bytes(path, layout.compression) as raw:
        for line_number, line in enumerate(raw, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f" in line {line_number}"
    return ""


def records(lines: Iterator[str], layout: Layout) -> Iterator[str]:
    """Yield the records of a file: with header and trailer, without comments."""
    return (record for _, record in numbered_records(lines, layout))


def numbered_records(lines: Iterator[str], layout: Layout) -> Iterator[tuple[int, str]]:
    """Yield the records of a file, each with its first line number."""
    parts: list[str] = []
    is_open = False
    start = 0
    for line_number, line in islice(enumerate(lines, 1), layout.skip_lines, None):
        if not is_open and layout.is_blank_or_comment(line):
            continue
        start = start if parts else line_number
        parts.append(line)
        is_open ^= layout.opens_or_closes_quote(line)
        if not is_open:
            yield start, "".join(parts)
            parts = []
    if parts:
        yield start, "".join(parts)


def find_records(
    path: Path, layout: Layout, indexes: Collection[int]
) -> dict[int, tuple[int, str]]:
    """Return the line number and text of rows, by their index in the file."""
    with open_lines(path, layout, errors="replace") as lines:
        rows = islice(numbered_records(lines, layout), int(layout.header), None)
        needed = enumerate(islice(rows, max(indexes) + 1))
        return {
            index: (line_number, record.rstrip("\r\n"))
            for index, (line_number, record) in needed
            if index in indexes
        }


def count_records(path: Path, layout: Layout) -> int:
    """Count the records of a file without header and trailer."""
    with open_lines(path, layout) as lines:
        count = sum(1 for _ in records(lines, layout))
    return max(count - layout.header - layout.trailer, 0)


def first_record(path: Path, layout: Layout) -> str | None:
    """Return the first record of a file, without its line break."""
    # Invalid bytes in the rest of the file are reported when it is read.
    with open_lines(path, layout, errors="replace") as lines:
        first = next(records(lines, layout), None)
    return None if first is None else first.rstrip("\r\n")


def prepare_copy(path: Path, layout: Layout, copy: Path) -> None:
    """Write a copy that Spark can read: UTF-8, without skipped lines and trailer."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    draft = copy.with_name(f".{copy.name}.{uuid4().hex}")
    with open_lines(path, layout) as lines, draft.open("w", encoding="utf-8", newline="") as target:
        pending: str | None = None
        for record in records(lines, layout):
            target.write(pending or "")
            pending = record
        if pending is not None and not layout.trailer:
            target.write(pending)
    os.replace(draft, copy)  # noqa: PTH105 — atomic: readers never see half a file


def recode(path: Path, layout: Layout) -> None:
    """Convert a UTF-8 file that Spark wrote to the declared encoding."""
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    with (
        open_lines(path, replace(layout, encoding="UTF-8")) as lines,
        open_compressed(draft, _compression(path, layout.compression)) as target,
    ):
        try:
            for line in lines:
                target.write(line.encode(layout.encoding))
        except UnicodeEncodeError as error:
            draft.unlink()
            letter = error.object[error.start]
            reason = f"cannot be written as {layout.encoding}, which has no character '{letter}'"
            raise UnreadableTextError(path, reason) from error
    draft.replace(path)


@contextmanager
def open_compressed(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """Open a file for writing, compressed."""
    if compression == "none":
        with path.open("wb") as file:
            yield file
    elif compression == "gzip":
        # Without the time, so that the same rows always give the same bytes.
        with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
            yield cast("IO[bytes]", packed)
    elif compression == "bzip2":
        with bz2.BZ2File(path, "wb") as packed_bz2:
            yield cast("IO[bytes]", packed_bz2)
    else:
        reason = f"cannot be written with compression {compression}: use none, gzip or bzip2"
        raise UnreadableTextError(path, reason)


def append_line(path: Path, layout: Layout, line: str) -> None:
    """Append a line to a file, compressed like the file."""
    content = line.encode(layout.encoding)
    kind = _compression(path, layout.compression)
    if kind not in PACKED:
        raise UnreadableTextError(path, f"is compressed with {kind}: cannot append a line to it")
    # gzip and bzip2 files can be concatenated; readers see one text.
    with path.open("ab") as file:
        file.write(PACKED[kind](content))
