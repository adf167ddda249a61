"""A JSON manifest, in floe's own shape and in the spellings that others use."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from floe.execution.formats.manifests.promise import Promise, PromisedFile, PromiseError
from floe.spec.datasets import JsonManifest

ALGORITHMS = ("md5", "sha1", "sha256", "sha512", "crc32")
NAMES = ("name", "file", "filename", "file_name", "path")
ROWS = ("rows", "row_count", "rowCount", "records", "record_count", "recordCount", "num_rows")
SIZES = ("size", "bytes", "size_bytes", "length")
CHECKSUMS = ("checksum", "hash", "digest")
KINDS = ("algorithm", "checksum_type", "checksum_algorithm", "hash_type")


def parse_json(content: bytes, manifest: JsonManifest) -> Promise:
    """Read a manifest."""
    try:
        tree = json.loads(content.decode("utf-8-sig"))
    except ValueError as error:
        raise PromiseError(f"it is not JSON: {error}") from error
    tree = {"files": tree} if isinstance(tree, list) else tree
    if not isinstance(tree, Mapping):
        raise PromiseError("it is neither an object nor a list of files")
    checksum, algorithm = _checksum(tree, manifest.checksum)
    return Promise(_files(tree.get("files"), manifest), _count(tree, ROWS), checksum, algorithm)


def render_json(about: Mapping[str, Any], files: Sequence[PromisedFile]) -> bytes:
    """Write a manifest in floe's own shape."""
    listed = [_written(file) for file in files]
    rows = Promise(tuple(files)).total_rows
    total = {} if rows is None else {"rows": rows}
    return (json.dumps({**about, **total, "files": listed}, indent=2) + "\n").encode()


def _written(file: PromisedFile) -> dict[str, Any]:
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
        listed = [{"name": name, **_as_mapping(about)} for name, about in listed.items()]
    if not isinstance(listed, list):
        raise PromiseError("its 'files' is not a list")
    return tuple(_file(entry, manifest) for entry in listed)


def _as_mapping(about: Any) -> Mapping[str, Any]:
    return about if isinstance(about, Mapping) else {"rows": about}


def _file(entry: Any, manifest: JsonManifest) -> PromisedFile:
    if isinstance(entry, str):
        return PromisedFile(entry)
    if not isinstance(entry, Mapping):
        raise PromiseError(f"{entry!r} is not the entry of a file")
    name = _first(entry, NAMES)
    if not isinstance(name, str):
        raise PromiseError(f"the entry {json.dumps(entry)} names no file")
    checksum, algorithm = _checksum(entry, manifest.checksum)
    return PromisedFile(name, _count(entry, ROWS), _count(entry, SIZES), checksum, algorithm)


def _checksum(entry: Mapping[str, Any], declared: str | None) -> tuple[str | None, str | None]:
    for algorithm in ALGORITHMS if declared is None else (declared, *ALGORITHMS):
        if isinstance(entry.get(algorithm), str):
            return entry[algorithm], algorithm
    text = _first(entry, CHECKSUMS)
    if not isinstance(text, str):
        return None, None
    kind, colon, value = text.partition(":")
    said = kind if colon else _first(entry, KINDS)
    algorithm = str(said or declared or "").lower().replace("-", "")
    return (value if colon else text), (algorithm if algorithm in ALGORITHMS else None)


def _count(entry: Mapping[str, Any], names: Sequence[str]) -> int | None:
    value = _first(entry, names)
    if value is None:
        return None
    try:
        return int(str(value))
    except ValueError:
        raise PromiseError(f"'{value}' is not a number of {names[0]}") from None


def _first(entry: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)
