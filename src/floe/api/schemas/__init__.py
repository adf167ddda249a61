"""Schemas of the API's requests and responses, one module per noun.

Fields have the names of the catalog's columns, see docs/reference/catalog.md. Frozen dataclasses
of the catalog are returned unchanged. This module has the shared types: text with the maximum
length of the catalog's columns and without U+0000.
"""

from typing import Annotated, TypeVar

import msgspec

# No database stores U+0000 in text.
_STORABLE = "^[^\\u0000]*$"

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=300, pattern=_STORABLE)]
WholeName = Annotated[str, msgspec.Meta(min_length=1, max_length=600, pattern=_STORABLE)]
Namespace = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=_STORABLE)]
Words = Annotated[str, msgspec.Meta(max_length=200, pattern=_STORABLE)]
Category = Annotated[str, msgspec.Meta(max_length=100, pattern=_STORABLE)]
Format = Annotated[str, msgspec.Meta(max_length=50, pattern=_STORABLE)]
Prose = Annotated[str, msgspec.Meta(max_length=20_000, pattern=_STORABLE)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Day = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$", examples=["2026-09-01"])]
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000, pattern=_STORABLE)]

Shape = TypeVar("Shape")


def to_schema(row: object, shape: type[Shape]) -> Shape:
    """Convert a row of the catalog to a schema."""
    return msgspec.convert(row, shape, from_attributes=True)
