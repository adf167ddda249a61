"""Small things that every noun's module does with rows."""

from collections.abc import Mapping
from typing import Any

from floe import clock

LARGEST_NUMBER = 2**63 - 1


def apply_fields(row: Any, values: Mapping[str, Any]) -> list[str]:
    """Set the fields of a row that differ, and its time of change; return their names."""
    changed = [name for name, value in values.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, values[name])
    if changed:
        row.updated_at = clock.now()
    return changed


def number_of(text: str) -> int | None:
    """Read a row's number, None for what is none or is larger than any row's."""
    if not (text.isascii() and text.isdigit()):
        return None
    number = int(text[:20])
    return number if number <= LARGEST_NUMBER else None
