"""A trailer: the last line of a file says how many rows came before it."""

from pathlib import Path

from floe.execution.formats.checksums import new_hasher
from floe.execution.formats.manifests.promise import (
    DIGITS,
    PromisedFile,
    PromiseError,
    shown_line,
)
from floe.execution.formats.text import Layout, open_lines, records
from floe.spec.datasets import TrailerManifest


def read_trailer(path: Path, layout: Layout, manifest: TrailerManifest) -> str | None:
    """Return the trailer line of a file; None when its last line is not one."""
    last = ""
    with open_lines(path, layout) as lines:
        for record in records(lines, layout):
            last = record
    return last.rstrip("\r\n") if last.startswith(manifest.prefix) else None


def parse_trailer(name: str, line: str, manifest: TrailerManifest, delimiter: str) -> PromisedFile:
    """Read what a trailer line promises."""
    fields = [field.strip() for field in line.split(manifest.delimiter or delimiter or None)]
    rows = _field(fields, manifest.rows_field, line)
    if not DIGITS.fullmatch(rows):
        shown = f"'{shown_line(rows)}' where the row count should be"
        raise PromiseError(f"its trailer '{shown_line(line)}' has {shown}")
    checksum = manifest.checksum_field and _field(fields, manifest.checksum_field, line)
    algorithm = manifest.checksum or "sha256" if checksum else None
    return PromisedFile(name, int(rows), checksum=checksum or None, algorithm=algorithm)


def checksum_before(path: Path, layout: Layout, kind: str) -> str:
    """Return the checksum of all lines before the trailer, with their line breaks."""
    hasher = new_hasher(kind)
    held: list[str] = []
    with open_lines(path, layout) as lines:
        for line in lines:
            if line.strip() and held:
                hasher.update("".join(held).encode(layout.encoding))
                held = []
            held.append(line)
    return hasher.hexdigest()


def content_checksum(path: Path, layout: Layout, kind: str) -> str:
    """Return the checksum of a file that has no trailer yet, as it will stand before one."""
    hasher = new_hasher(kind)
    with open_lines(path, layout) as lines:
        for line in lines:
            hasher.update(line.encode(layout.encoding))
    return hasher.hexdigest()


def render_trailer(
    manifest: TrailerManifest, delimiter: str, rows: int, checksum: str | None
) -> str:
    """Write a trailer line."""
    fields = [manifest.prefix] + [""] * (max(manifest.rows_field, manifest.checksum_field or 0) - 1)
    fields[manifest.rows_field - 1] = str(rows)
    if manifest.checksum_field is not None:
        fields[manifest.checksum_field - 1] = checksum or ""
    return (manifest.delimiter or delimiter or " ").join(fields) + "\n"


def _field(fields: list[str], number: int, line: str) -> str:
    if len(fields) < number:
        raise PromiseError(f"its trailer '{shown_line(line)}' has no field {number}")
    return fields[number - 1]
