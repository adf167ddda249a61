"""How a format looks into its own files without Spark, which manifests need."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from floe.execution.formats.text import Layout

CountRows = Callable[[Path], int | None]


@dataclass(frozen=True)
class Reading:
    """What verifying and writing a manifest needs to know of a format."""

    count_rows: CountRows
    layout: Layout = field(default_factory=Layout)
    delimiter: str = ""
