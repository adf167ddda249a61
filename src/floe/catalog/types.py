"""Column types that mean the same on every store."""

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

# SQLite gives a row its number by itself only where the type is spelled INTEGER.
Identifier = BigInteger().with_variant(Integer(), "sqlite")


class UtcTime(TypeDecorator[datetime]):
    """A moment, stored in UTC and always read back aware."""

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


# A pair of surrogates, an escaped backslash, and last what stands alone of a pair.
_SURROGATES = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_ALONE = len("\\ud800")
_MOST_DIGITS = 4_000


def read_json(text: str) -> Any:
    """Read JSON that others have written, whatever JSON allows and Python does not.

    Half of a surrogate pair, which is left where a text was cut, becomes U+FFFD. A number with
    thousands of digits stays a text.
    """
    if "\\ud" in text or "\\uD" in text:
        text = _SURROGATES.sub(lambda found: _whole(found[0]), text)
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text, parse_int=_int_or_text)


def _whole(escaped: str) -> str:
    return "\\ufffd" if len(escaped) == _ALONE else escaped


def _int_or_text(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


class JsonText(TypeDecorator[Any]):
    """A JSON document kept as text, because DB2 has a CLOB where others have a JSON type."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None:
            return None
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else read_json(value)


class YesNo(TypeDecorator[bool]):
    """A truth value as 'Y' or 'N', which every store and every report tool reads alike."""

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
        # PostgreSQL spells UUIDs in lower case; elsewhere `A…` and `a…` would be two runs.
        return None if value is None else value.lower()
