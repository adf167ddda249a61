"""Column types that behave the same on every store."""

import json
import re
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    CHAR,
    TIMESTAMP,
    UUID,
    BigInteger,
    DateTime,
    Dialect,
    Integer,
    Text,
    TypeDecorator,
)
from sqlalchemy.types import TypeEngine

# SQLite generates ids only for columns of type INTEGER.
Identifier = BigInteger().with_variant(Integer(), "sqlite")


class UtcTime(TypeDecorator[datetime]):
    """A timestamp, stored in UTC and read back with its time zone."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        return dialect.type_descriptor(DateTime())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone; floe stores UTC only (see floe.clock)")
        utc = value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# An escaped backslash, a surrogate pair, or half of a pair.
_SURROGATES = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_HALF_PAIR_LENGTH = len("\\ud800")
_MAX_DIGITS = 4_000


def read_json(text: str) -> Any:
    """Parse JSON from other systems, including values that Python rejects.

    Half of a surrogate pair, which is left when a string was truncated, becomes U+FFFD. A number
    with thousands of digits becomes a string.
    """
    if "\\ud" in text or "\\uD" in text:
        text = _SURROGATES.sub(lambda match: _replace_half_pair(match[0]), text)
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text, parse_int=_int_or_text)


def _replace_half_pair(escaped: str) -> str:
    return "\\ufffd" if len(escaped) == _HALF_PAIR_LENGTH else escaped


def _int_or_text(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MAX_DIGITS else digits


class JsonText(TypeDecorator[Any]):
    """A JSON document stored as text, because DB2 has no JSON type."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None:
            return None
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else read_json(value)


class YesNo(TypeDecorator[bool]):
    """A boolean stored as 'Y' or 'N', which every store and report tool can read."""

    impl = CHAR(1)
    cache_ok = True

    def process_bind_param(self, value: bool | None, dialect: Dialect) -> str | None:
        return None if value is None else ("Y" if value else "N")

    def process_result_value(self, value: str | None, dialect: Dialect) -> bool | None:
        return None if value is None else value == "Y"


class RunUuid(TypeDecorator[str]):
    """A run's UUID as text: native on PostgreSQL (16 bytes), CHAR(36) elsewhere."""

    impl = CHAR(36)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(UUID(as_uuid=False))
        return dialect.type_descriptor(CHAR(36))

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        # PostgreSQL returns UUIDs in lower case; elsewhere `A…` and `a…` would be two runs.
        return None if value is None else value.lower()
