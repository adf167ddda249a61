"""Check the type of a column: what Spark SQL calls its types."""

import re
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator

from floe.spec.nearby import suggest
from floe.spec.wrong import wrong

_SIMPLE = frozenset(
    {
        *("boolean", "byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"),
        *("float", "real", "double", "decimal", "numeric", "dec"),
        *("string", "binary", "variant", "void"),
        *("date", "timestamp", "timestamp_ntz", "timestamp_ltz"),
    }
)
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)\(\s*\d{1,2}\s*(?:,\s*\d{1,2}\s*)?\)")
_CHARACTERS = re.compile(r"(?:var)?char\(\s*\d+\s*\)")
_NESTED = re.compile(r"(array|map|struct)\s*<(.*)>", re.DOTALL)
_MAX_LENGTH = 2_000


@lru_cache(maxsize=4096)
def check_column_type(text: str) -> str:
    """Accept `bigint`, `decimal(18,2)`, `array<string>`, `struct<id: bigint, name: string>`."""
    if len(text) > _MAX_LENGTH or not _is_type(text.strip().lower(), depth=0):
        base = re.split(r"[(<]", text.strip().lower())[0]
        hint = suggest(base, _SIMPLE, "Write a Spark SQL type, such as bigint or decimal(18,2).")
        if base in _SIMPLE:
            hint = "Write it as decimal(18,2)."
        raise wrong(f"'{text}' is not a column type", hint, "string")
    return text


def _is_type(text: str, depth: int) -> bool:
    if text in _SIMPLE or _DECIMAL.fullmatch(text) or _CHARACTERS.fullmatch(text):
        return True
    nested = _NESTED.fullmatch(text)
    if nested is None or depth > 10:
        return False
    parts = _split(nested[2])
    if nested[1] == "struct":
        return all(_is_field(part, depth + 1) for part in parts)
    wanted = 1 if nested[1] == "array" else 2
    return len(parts) == wanted and all(_is_type(part, depth + 1) for part in parts)


def _is_field(text: str, depth: int) -> bool:
    name, colon, kind = text.partition(":")
    return bool(colon and name.strip()) and _is_type(kind.strip(), depth)


def _split(text: str) -> list[str]:
    """Split at the commas that stand outside brackets."""
    parts, level = [""], 0
    for letter in text:
        level += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and level == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


ColumnType = Annotated[str, AfterValidator(check_column_type)]
