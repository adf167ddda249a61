"""Which code knows a format: floe's own and those of installed packages, found the same way."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from floe.errors import FloeError
from floe.execution.formats.contract import Format
from floe.spec.formats import ENTRY_POINTS, known_formats
from floe.spec.nearby import nearest

_HERE = "floe.execution.formats"
OWN = tuple(
    EntryPoint(name, f"{_HERE}.{where}", ENTRY_POINTS)
    for name, where in (
        ("iceberg", "iceberg:IcebergFormat"),
        ("parquet", "parquet:ParquetFormat"),
        ("csv", "csv:CsvFormat"),
        ("fixed_width", "fixed_width:FixedWidthFormat"),
        ("jdbc", "jdbc:JdbcFormat"),
        ("files", "files:FilesFormat"),
    )
)


class UnknownFormatError(FloeError):
    """A dataset names a format that nothing here knows."""

    def __init__(self, name: str, known: list[str]) -> None:
        near = nearest(name, known)
        hint = f"Did you mean '{near}'?" if near else f"There are: {', '.join(known)}."
        super().__init__(f"No format named '{name}' is installed. {hint}")


class FormatNotLoadedError(FloeError):
    """The package that registers a format cannot be loaded."""

    def __init__(self, name: str, where: str, reason: str) -> None:
        super().__init__(f"The format '{name}' cannot be loaded from {where}: {reason}")


@cache
def format_named(name: str) -> Format:
    """Return the code of a format. Nothing is imported before a dataset needs it."""
    entries = {entry.name: entry for entry in (*entry_points(group=ENTRY_POINTS), *OWN)}
    if name not in entries:
        raise UnknownFormatError(name, sorted({*entries, *known_formats()}))
    return _load(entries[name])


def _load(entry: EntryPoint) -> Format:
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise FormatNotLoadedError(entry.name, entry.value, str(error)) from error
    return cast("Format", found() if isinstance(found, type) else found)
