"""The three kinds of manifest: a JSON file, a control file and a trailer line.

Each is parsed into a Promise: the files, row counts and checksums that a delivery should have.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from floe.execution.formats.storage import new_hasher
from floe.execution.formats.text_files import Layout, open_lines, records
from floe.spec.datasets import ControlManifest, JsonManifest, TrailerManifest

CountRows = Callable[[Path], int | None]
# Row and byte counts fit in 18 digits.
DIGITS = re.compile(r"[0-9]{1,18}")
LONGEST_SHOWN = 80
ALGORITHMS = ("md5", "sha1", "sha256", "sha512", "crc32")
NAME_KEYS = ("name", "file", "filename", "file_name", "path")
ROW_KEYS = ("rows", "row_count", "rowCount", "records", "record_count", "recordCount", "num_rows")
SIZE_KEYS = ("size", "bytes", "size_bytes", "length")
CHECKSUM_KEYS = ("checksum", "hash", "digest")
LONGEST_INTEGER = 40
ALGORITHM_KEYS = ("algorithm", "checksum_type", "checksum_algorithm", "hash_type")


@dataclass(frozen=True)
class Reading:
    """How a format lets manifests inspect its files without Spark."""

    count_rows: CountRows
    layout: Layout = field(default_factory=Layout)
    delimiter: str = ""


@dataclass(frozen=True)
class PromisedFile:
    """A file as listed in the manifest; None where the manifest gives no value."""

    name: str
    rows: int | None = None
    size: int | None = None
    checksum: str | None = None
    algorithm: str | None = None


@dataclass(frozen=True)
class Promise:
    """The content of a manifest; None where the manifest gives no value.

    Do not rename this class, PromisedFile or their fields: their repr is part of the fingerprints
    that the catalog stores, and a changed fingerprint makes a known delivery look new.
    """

    files: tuple[PromisedFile, ...] | None = None
    rows: int | None = None
    checksum: str | None = None
    algorithm: str | None = None

    @property
    def total_rows(self) -> int | None:
        """The total row count, or None if any file lacks one."""
        if self.rows is not None or self.files is None:
            return self.rows
        counts = [file.rows for file in self.files]
        return sum(count for count in counts if count is not None) if None not in counts else None


class ManifestError(Exception):
    """A manifest is invalid. The verifier adds the dataset and the file."""


def whole_number(value: object, what: str) -> int:
    """Parse a count: a whole number, or its digits as text."""
    text = str(value).strip()
    if isinstance(value, bool | float) or not DIGITS.fullmatch(text):
        raise ManifestError(f"invalid number of {what}: '{shorten(text)}'")
    return int(text)


def shorten(text: str) -> str:
    """Shorten a text so that it fits in an error message."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def parse_json(content: bytes, manifest: JsonManifest) -> Promise:
    """Parse a JSON manifest, in floe's layout or with other common key names."""
    try:
        tree = json.loads(
            content.decode("utf-8-sig"),
            object_pairs_hook=_unique_keys,
            parse_constant=_reject_constant,
            parse_int=_parse_int,
        )
    except RecursionError:
        raise ManifestError("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ManifestError(f"it is not UTF-8: {error.reason} at byte {error.start}") from None
    except ValueError as error:
        raise ManifestError(f"it is not JSON: {error}") from error
    tree = {"files": tree} if isinstance(tree, list) else tree
    if not isinstance(tree, Mapping):
        raise ManifestError("it is neither an object nor a list of files")
    checksum, algorithm = _checksum(tree, manifest.checksum)
    return Promise(_files(tree.get("files"), manifest), _count(tree, ROW_KEYS), checksum, algorithm)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = Counter(name for name, _ in pairs)
    for name, count in names.items():
        if count > 1:
            raise ManifestError(f"it has '{name}' more than once in one object")
    return dict(pairs)


def _reject_constant(word: str) -> Any:
    raise ManifestError(f"{word} is not a number")


def _parse_int(text: str) -> int | str:
    # Python cannot convert very long digit strings; keep the text, so whole_number rejects it.
    return int(text) if len(text) <= LONGEST_INTEGER else text


def render_json(header: Mapping[str, Any], files: Sequence[PromisedFile]) -> bytes:
    """Render a JSON manifest in floe's layout."""
    entries = [_entry(file) for file in files]
    rows = Promise(tuple(files)).total_rows
    total = {} if rows is None else {"rows": rows}
    return (json.dumps({**header, **total, "files": entries}, indent=2) + "\n").encode()


def _entry(file: PromisedFile) -> dict[str, Any]:
    fields = {
        "name": file.name,
        "size": file.size,
        "rows": file.rows,
        "algorithm": file.algorithm,
        "checksum": file.checksum,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _files(listed: Any, manifest: JsonManifest) -> tuple[PromisedFile, ...] | None:
    if listed is None:
        return None
    if isinstance(listed, Mapping):
        listed = [{"name": name, **_as_mapping(value)} for name, value in listed.items()]
    if not isinstance(listed, list):
        raise ManifestError("its 'files' is not a list")
    files = tuple(_file(entry, manifest) for entry in listed)
    for name, count in Counter(file.name for file in files).items():
        if count > 1:
            raise ManifestError(f"it lists {name} {'twice' if count == 2 else f'{count} times'}")
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise ManifestError(f"it lists {name}, which is outside the delivery folder")
    return files


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {"rows": value}


def _file(entry: Any, manifest: JsonManifest) -> PromisedFile:
    if isinstance(entry, str):
        return PromisedFile(entry)
    if not isinstance(entry, Mapping):
        raise ManifestError(f"{shorten(repr(entry))} is not a valid file entry")
    name = _first(entry, NAME_KEYS)
    if not isinstance(name, str):
        raise ManifestError(f"the entry {shorten(json.dumps(entry))} has no file name")
    checksum, algorithm = _checksum(entry, manifest.checksum)
    return PromisedFile(
        name, _count(entry, ROW_KEYS), _count(entry, SIZE_KEYS), checksum, algorithm
    )


def _checksum(entry: Mapping[str, Any], declared: str | None) -> tuple[str | None, str | None]:
    for algorithm in ALGORITHMS if declared is None else (declared, *ALGORITHMS):
        if isinstance(entry.get(algorithm), str):
            return entry[algorithm], algorithm
    text = _first(entry, CHECKSUM_KEYS)
    if not isinstance(text, str):
        return None, None
    kind, colon, value = text.partition(":")
    named = kind if colon else _first(entry, ALGORITHM_KEYS)
    algorithm = str(named or declared or "").lower().replace("-", "")
    return (value if colon else text), (algorithm if algorithm in ALGORITHMS else None)


def _count(entry: Mapping[str, Any], names: Sequence[str]) -> int | None:
    value = _first(entry, names)
    return None if value is None else whole_number(value, names[0])


def _first(entry: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)


def parse_control(content: bytes, manifest: ControlManifest) -> Promise:
    """Parse a control file: one name and value per line."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(f"it is not UTF-8: {error.reason} at byte {error.start}") from None
    values = _control_values(text, manifest.delimiter)
    rows = _required(values, manifest.rows)
    checksum = _required(values, manifest.checksum_name)
    return Promise(
        rows=None if rows is None else whole_number(rows, "rows"),
        checksum=checksum,
        algorithm=None if checksum is None else manifest.checksum or "sha256",
    )


def render_control(manifest: ControlManifest, rows: int, checksum: str | None) -> bytes:
    """Render a control file."""
    lines = [(manifest.rows, str(rows)), (manifest.checksum_name, checksum)]
    rendered = [f"{name}{manifest.delimiter}{value}\n" for name, value in lines if name and value]
    return "".join(rendered).encode()


def _control_values(text: str, delimiter: str) -> dict[str, str]:
    # Values are stripped, so a blank as delimiter also works for files with aligned columns.
    pairs = (line.partition(delimiter) for line in text.splitlines() if delimiter in line)
    values: dict[str, str] = {}
    for name, _, value in pairs:
        if values.setdefault(name.strip(), value.strip()) != value.strip():
            raise ManifestError(f"it has two values for '{name.strip()}'")
    return values


def _required(values: dict[str, str], name: str | None) -> str | None:
    if not name:
        return None
    if name not in values:
        raise ManifestError(f"it has no line for '{name}'")
    return values[name]


def read_trailer(path: Path, layout: Layout, manifest: TrailerManifest) -> str | None:
    """Return the trailer line of a file, or None if its last line is not a trailer."""
    last = ""
    with open_lines(path, layout) as lines:
        for record in records(lines, layout):
            last = record
    return last.rstrip("\r\n") if last.startswith(manifest.prefix) else None


def parse_trailer(name: str, line: str, manifest: TrailerManifest, delimiter: str) -> PromisedFile:
    """Parse a trailer line: the row count, and the checksum if there is one."""
    fields = [field.strip() for field in line.split(manifest.delimiter or delimiter or None)]
    rows = _field(fields, manifest.rows_field, line)
    if not DIGITS.fullmatch(rows):
        problem = f"the row count must be a whole number; got '{shorten(rows)}'"
        raise ManifestError(f"its trailer '{shorten(line)}' is invalid: {problem}")
    checksum = manifest.checksum_field and _field(fields, manifest.checksum_field, line)
    algorithm = manifest.checksum or "sha256" if checksum else None
    return PromisedFile(name, int(rows), checksum=checksum or None, algorithm=algorithm)


def checksum_before(path: Path, layout: Layout, kind: str) -> str:
    """Return the checksum of all lines before the trailer, line breaks included."""
    hasher = new_hasher(kind)
    pending: list[str] = []
    with open_lines(path, layout) as lines:
        for line in lines:
            if line.strip() and pending:
                hasher.update("".join(pending).encode(layout.encoding))
                pending = []
            pending.append(line)
    return hasher.hexdigest()


def content_checksum(path: Path, layout: Layout, kind: str) -> str:
    """Return the checksum of a file before its trailer is appended."""
    hasher = new_hasher(kind)
    with open_lines(path, layout) as lines:
        for line in lines:
            hasher.update(line.encode(layout.encoding))
    return hasher.hexdigest()


def render_trailer(
    manifest: TrailerManifest, delimiter: str, rows: int, checksum: str | None
) -> str:
    """Render a trailer line."""
    fields = [manifest.prefix] + [""] * (max(manifest.rows_field, manifest.checksum_field or 0) - 1)
    fields[manifest.rows_field - 1] = str(rows)
    if manifest.checksum_field is not None:
        fields[manifest.checksum_field - 1] = checksum or ""
    return (manifest.delimiter or delimiter or " ").join(fields) + "\n"


def _field(fields: list[str], position: int, line: str) -> str:
    if len(fields) < position:
        raise ManifestError(f"its trailer '{shorten(line)}' has no field {position}")
    return fields[position - 1]
