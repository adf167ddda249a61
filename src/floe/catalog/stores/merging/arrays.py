"""Write lists as PostgreSQL's array literals. For many values it is several times faster than to
adapt each of them, and the server reads both equally fast.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

# Dimensions, whether there are NULLs, the type; then the only dimension's length and start.
ARRAY_HEAD, LENGTH = struct.Struct("!iiIii"), struct.Struct("!i")
BYTEA = 17
BETWEEN = "\x1f"


def numbers(values: Sequence[int | None]) -> str:
    """`{1, 2, NULL}`."""
    # As Python writes a list: nothing is faster, and spaces are allowed.
    return "{" + repr(list(values))[1:-1].replace("None", "NULL") + "}"


def texts(values: Sequence[str | None]) -> str:
    """`{"a","b",NULL}`, with quotes and backslashes escaped."""
    if not values:
        return "{}"
    if None in values:
        return "{" + ",".join(map(_quoted, values)) + "}"
    # All of them at once, with something between them that none of them has.
    joined = BETWEEN.join(values)  # type: ignore[arg-type]
    if joined.count(BETWEEN) != len(values) - 1:
        return "{" + ",".join(map(_quoted, values)) + "}"
    return '{"' + _escaped(joined).replace(BETWEEN, '","') + '"}'


def moments(values: Sequence[str | None]) -> str:
    """`{2026-09-01T12:00:00+00:00,NULL}`, of times and days that are written out already."""
    if None in values:
        return "{" + ",".join(["NULL" if value is None else value for value in values]) + "}"
    return "{" + ",".join(values) + "}"  # type: ignore[arg-type]


def binaries(values: Sequence[bytes]) -> bytes:
    """Bytes, in the binary form of an array: in text each would be a third longer to read."""
    parts = [ARRAY_HEAD.pack(1, 0, BYTEA, len(values), 1)]
    for value in values:
        parts += (LENGTH.pack(len(value)), value)
    return b"".join(parts)


def _quoted(value: str | None) -> str:
    if value is None:
        return "NULL"
    return f'"{_escaped(value)}"'


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


Writer = Callable[[Sequence[Any]], str | bytes]
WRITERS: dict[str, Writer] = {
    "BIGINT": numbers,
    "INTEGER": numbers,
    "BYTEA": binaries,
    "TEXT": texts,
    "UUID": texts,
    "DATE": moments,
    "TIMESTAMP WITH TIME ZONE": moments,
}
