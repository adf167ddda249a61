"""SQL in floe.yaml: column types, and SQL given inline or as a .sql file."""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from floe.spec.base import value_error
from floe.spec.nearby import suggest

if TYPE_CHECKING:
    from floe.spec.processes import ProcessSpec

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
    """Accept a Spark SQL type, such as `decimal(18,2)` or `array<string>`."""
    if len(text) > _MAX_LENGTH or not _is_type(text.strip().lower(), depth=0):
        base = re.split(r"[(<]", text.strip().lower())[0]
        hint = suggest(base, _SIMPLE, "Write a Spark SQL type, such as bigint or decimal(18,2).")
        if base in _SIMPLE:
            hint = "Write it as decimal(18,2)."
        raise value_error(f"'{text}' is not a column type", hint, "string")
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
    """Split at the commas outside brackets."""
    parts, level = [""], 0
    for letter in text:
        level += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and level == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


ColumnType = Annotated[str, AfterValidator(check_column_type)]


_FILE = re.compile(r"[^\s;]+\.sql", re.IGNORECASE)


def is_sql_file(sql: str) -> bool:
    """Return whether a text is the name of a SQL file rather than SQL."""
    return _FILE.fullmatch(sql) is not None


def sql_of_processes(root: Path, processes: Mapping[str, "ProcessSpec"]) -> dict[str, str]:
    """Return the SQL of each process that has any."""
    texts = {name: process_sql(root, process) for name, process in processes.items()}
    return {name: text for name, text in texts.items() if text}


def process_sql(root: Path, process: "ProcessSpec") -> str:
    """Return the SQL of a process, with a comment before each step; missing files are left out."""
    steps: list[tuple[str, str | None]] = [("", process.sql)]
    steps += [(f"-- {step.name}\n", step.sql) for step in process.steps]
    steps += [("", statement) for statement in process.statements]
    return "\n\n".join(
        f"{comment}{read_sql(root, sql)}"
        for comment, sql in steps
        if sql is not None and (not is_sql_file(sql) or (root / sql).is_file())
    )


def read_sql(root: Path, sql: str) -> str:
    """Return inline SQL unchanged, or the content of the SQL file it names."""
    return (root / sql).read_text(encoding="utf-8") if is_sql_file(sql) else sql
