"""Schemas of processes and runs: pages of what the catalog returns."""

from collections.abc import Sequence

from msgspec import Struct

from floe.catalog.processes import ProcessRow
from floe.catalog.runs import RunRow


class ProcessPage(Struct):
    """A page of processes, sorted by key."""

    items: Sequence[ProcessRow]
    next: str | None


class RunPage(Struct):
    """A page of runs, newest first."""

    items: Sequence[RunRow]
    next: str | None
