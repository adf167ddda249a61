"""Find the code of a format: built-in, or registered by an installed package."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from floe.errors import FloeError
from floe.execution.formats.contract import Format
from floe.spec.formats import ENTRY_POINTS, known_formats
from floe.spec.nearby import nearest

_HERE = "floe.execution.formats"
BUILT_IN_FORMATS = tuple(
    EntryPoint(name, f"{_HERE}.{target}", ENTRY_POINTS)
    for name, target in (
        ("iceberg", "iceberg:IcebergFormat"),
        ("parquet", "parquet:ParquetFormat"),
        ("csv", "csv:CsvFormat"),
        ("fixed_width", "fixed_width:FixedWidthFormat"),
        ("jdbc", "jdbc:JdbcFormat"),
        ("files", "files:FilesFormat"),
    )
)


class UnknownFormatError(FloeError):
    """A dataset uses a format that is not installed."""

    def __init__(self, name: str, known: list[str]) -> None:
        near = nearest(name, known)
        hint = f"Did you mean '{near}'?" if near else f"Installed formats: {', '.join(known)}."
        super().__init__(f"No format named '{name}' is installed. {hint}")


class FormatNotLoadedError(FloeError):
    """The package that registers a format cannot be loaded."""

    def __init__(self, name: str, target: str, reason: str) -> None:
        super().__init__(f"The format '{name}' cannot be loaded from {target}: {reason}")


@cache
def format_named(name: str) -> Format:
    """Return the implementation of a format, imported on first use."""
    installed = entry_points(group=ENTRY_POINTS)
    entries = {entry.name: entry for entry in (*installed, *BUILT_IN_FORMATS)}
    if name not in entries:
        raise UnknownFormatError(name, sorted({*entries, *known_formats()}))
    return _load(entries[name])


def _load(entry: EntryPoint) -> Format:
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        raise FormatNotLoadedError(entry.name, entry.value, str(error)) from error
    return cast("Format", loaded() if isinstance(loaded, type) else loaded)
