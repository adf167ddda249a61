"""A JSON manifest, in floe's own shape and in the spellings that others use."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from floe.execution.formats.manifests.promise import (
    Promise,
    PromisedFile,
    PromiseError,
    shown_line,
    whole_number,
)
from floe.spec.datasets import JsonManifest

ALGORITHMS = ("md5", "sha1", "sha256", "sha512", "crc32")
NAMES = ("name", "file", "filename", "file_name", "path")
ROWS = ("rows", "row_count", "rowCount", "records", "record_count", "recordCount", "num_rows")
SIZES = ("size", "bytes", "size_bytes", "length")
CHECKSUMS = ("checksum", "hash", "digest")
LONGEST_NUMBER = 40
KINDS = ("algorithm", "checksum_type", "checksum_algorithm", "hash_type")


def parse_json(content: bytes, manifest: JsonManifest) -> Promise:
    """Read a manifest."""
    try:
        tree = json.loads(
            content.decode("utf-8-sig"),
            object_pairs_hook=_object,
            parse_constant=_not_a_number,
            parse_int=_whole,
        )
    except RecursionError:
        raise PromiseError("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise PromiseError(f"it is not UTF-8: {error.reason} at byte {error.start}") from None
    except ValueError as error:
        raise PromiseError(f"it is not JSON: {error}") from error
    tree = {"files": tree} if isinstance(tree, list) else tree
    if not isinstance(tree, Mapping):
        raise PromiseError("it is neither an object nor a list of files")
    checksum, algorithm = _checksum(tree, manifest.checksum)
    return Promise(_files(tree.get("files"), manifest), _count(tree, ROWS), checksum, algorithm)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = Counter(name for name, _ in pairs)
    for name, count in names.items():
        if count > 1:
            raise PromiseError(f"it has '{name}' more than once in one object")
    return dict(pairs)


def _not_a_number(word: str) -> Any:
    raise PromiseError(f"{word} is not a number")


def _whole(text: str) -> int | str:
    # As text it is refused wherever a number is wanted; Python refuses to convert it.
    return int(text) if len(text) <= LONGEST_NUMBER else text


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
    files = tuple(_file(entry, manifest) for entry in listed)
    for name, count in Counter(file.name for file in files).items():
        if count > 1:
            raise PromiseError(f"it lists {name} {'twice' if count == 2 else f'{count} times'}")
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise PromiseError(f"it names {name}, which is outside the folder of the delivery")
    return files


def _as_mapping(about: Any) -> Mapping[str, Any]:
    return about if isinstance(about, Mapping) else {"rows": about}


def _file(entry: Any, manifest: JsonManifest) -> PromisedFile:
    if isinstance(entry, str):
        return PromisedFile(entry)
    if not isinstance(entry, Mapping):
        raise PromiseError(f"{shown_line(repr(entry))} is not the entry of a file")
    name = _first(entry, NAMES)
    if not isinstance(name, str):
        raise PromiseError(f"the entry {shown_line(json.dumps(entry))} names no file")
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
    return None if value is None else whole_number(value, names[0])


def _first(entry: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)
