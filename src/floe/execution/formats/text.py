"""Text files line by line, without Spark: how many records they hold, and copies it can read."""

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
# Spark alone reads and writes these.
ENDINGS |= {"lz4": ".lz4", "snappy": ".snappy"}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda content: content,
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "bzip2": bz2.compress,
}
# What Spark's readers take as it is.
PLAIN_ENCODINGS = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})


class UnreadableTextError(FloeError):
    """A text file cannot be read as what it is said to be."""

    def __init__(self, path: Path, reason: str) -> None:
        self.reason = f"{path.name} {reason}"
        super().__init__(f"{path} {reason}")


@dataclass(frozen=True)
class Layout:
    """What tells records from the rest of a text file."""

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
        """Whether Spark reads such files as they are."""
        return self.encoding.lower() in PLAIN_ENCODINGS and not self.skip_lines and not self.trailer

    def is_noise(self, line: str) -> bool:
        """Tell whether a line holds no record: blank, or a comment."""
        return not line.strip() or (self.comment is not None and line.startswith(self.comment))

    def toggles(self, line: str) -> bool:
        """Tell whether a quoted value that holds line breaks begins or ends in a line."""
        if not self.multiline:
            return False
        if self.escape != self.quote:
            line = line.replace(self.escape + self.quote, "")
        return line.count(self.quote) % 2 == 1


@contextmanager
def open_bytes(path: Path, compression: str = "none") -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed by its name's ending, else as it is said to be."""
    with path.open("rb") as raw:
        yield _decompressed(path, raw, _compression(path, compression))


def _compression(path: Path, said: str) -> str:
    by_ending = {ending: kind for kind, ending in ENDINGS.items()}
    return by_ending.get(path.suffix, said)


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
    raise UnreadableTextError(path, f"is compressed by {kind}, which only Spark can read")


@contextmanager
def open_lines(path: Path, layout: Layout, errors: str = "strict") -> Iterator[Iterator[str]]:
    """Open a file as lines, each with its own line break."""
    try:
        with open_bytes(path, layout.compression) as raw:
            encoding = "utf-8-sig" if layout.encoding.lower() in PLAIN_ENCODINGS else None
            yield iter(io.TextIOWrapper(raw, encoding or layout.encoding, errors, newline=""))
    except LookupError:
        reason = f"has an encoding that Python does not know: {layout.encoding}"
        raise UnreadableTextError(path, reason) from None
    except UnicodeDecodeError as error:
        reason = f"is not {layout.encoding}: {error.reason}{_damaged_line(path, layout)}"
        raise UnreadableTextError(path, reason) from error
    except UnicodeError as error:
        raise UnreadableTextError(path, f"is not {layout.encoding}: {error}") from error
    except (EOFError, OSError, zlib.error) as error:
        # With a number it is the disk's fault or that of permissions, and not the file's.
        if getattr(error, "errno", None) is not None:
            raise
        raise UnreadableTextError(path, f"cannot be read: {error}") from error


def _damaged_line(path: Path, layout: Layout) -> str:
    """Say which line of a file is not UTF-8. In other encodings a line break has other bytes."""
    if layout.encoding.lower() not in PLAIN_ENCODINGS:
        return ""
    with open_bytes(path, layout.compression) as raw:
        for number, line in enumerate(raw, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f" in line {number}"
    return ""


def records(lines: Iterator[str], layout: Layout) -> Iterator[str]:
    """Yield the records of a file: header and trailer too, blank lines and comments not."""
    return (record for _, record in numbered_records(lines, layout))


def numbered_records(lines: Iterator[str], layout: Layout) -> Iterator[tuple[int, str]]:
    """Yield the records of a file, each with the number of the line that it begins in."""
    parts: list[str] = []
    is_open = False
    start = 0
    for number, line in islice(enumerate(lines, 1), layout.skip_lines, None):
        if not is_open and layout.is_noise(line):
            continue
        start = start if parts else number
        parts.append(line)
        is_open ^= layout.toggles(line)
        if not is_open:
            yield start, "".join(parts)
            parts = []
    if parts:
        yield start, "".join(parts)


def find_records(
    path: Path, layout: Layout, indexes: Collection[int]
) -> dict[int, tuple[int, str]]:
    """Return some rows of a file by their index, each with its line number and its text."""
    with open_lines(path, layout, errors="replace") as lines:
        rows = islice(numbered_records(lines, layout), int(layout.header), None)
        upto = enumerate(islice(rows, max(indexes) + 1))
        return {
            index: (number, record.rstrip("\r\n"))
            for index, (number, record) in upto
            if index in indexes
        }


def count_records(path: Path, layout: Layout) -> int:
    """Count the rows of a file: its records without header and trailer."""
    with open_lines(path, layout) as lines:
        found = sum(1 for _ in records(lines, layout))
    return max(found - layout.header - layout.trailer, 0)


def first_record(path: Path, layout: Layout) -> str | None:
    """Return the first record of a file, without its line break."""
    # Whether the rest of the file is text is looked at with the rest.
    with open_lines(path, layout, errors="replace") as lines:
        first = next(records(lines, layout), None)
    return None if first is None else first.rstrip("\r\n")


def prepare_copy(path: Path, layout: Layout, copy: Path) -> None:
    """Write a copy that Spark can read: UTF-8, without lines on top and the trailer."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    draft = copy.with_name(f".{copy.name}.{uuid4().hex}")
    with open_lines(path, layout) as lines, draft.open("w", encoding="utf-8", newline="") as target:
        held: str | None = None
        for record in records(lines, layout):
            target.write(held or "")
            held = record
        if held is not None and not layout.trailer:
            target.write(held)
    os.replace(draft, copy)  # noqa: PTH105 — one look sees the old or the new, never half


def recode(path: Path, layout: Layout) -> None:
    """Rewrite a file that Spark wrote as UTF-8 in the encoding that its readers expect."""
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
            reason = f"cannot be written as {layout.encoding}: it has no letter '{letter}'"
            raise UnreadableTextError(path, reason) from error
    draft.replace(path)


@contextmanager
def open_compressed(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """Open a file for writing, compressed."""
    if compression == "none":
        with path.open("wb") as file:
            yield file
    elif compression == "gzip":
        # Without the time, so that the same rows make the same bytes.
        with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
            yield cast("IO[bytes]", packed)
    elif compression == "bzip2":
        with bz2.BZ2File(path, "wb") as packed_bz2:
            yield cast("IO[bytes]", packed_bz2)
    else:
        reason = f"cannot be written with {compression} here: use none, gzip or bzip2"
        raise UnreadableTextError(path, reason)


def append_line(path: Path, layout: Layout, line: str) -> None:
    """Write one more line at the end of a file."""
    content = line.encode(layout.encoding)
    kind = _compression(path, layout.compression)
    if kind not in PACKED:
        raise UnreadableTextError(path, f"is compressed by {kind}: no line can be added to it")
    # Packed files may be put one behind the other; readers see one text.
    with path.open("ab") as file:
        file.write(PACKED[kind](content))
