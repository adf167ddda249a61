"""What commands print: tables that fit the screen for people, JSON for scripts."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from floe.errors import FloeError

console = Console(highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False, soft_wrap=True)
PADDING, EDGE = 2, 0
"""Characters that a table needs beside its text: per column, and in total."""


def print_json(value: object) -> None:
    """Print one JSON document to standard output, without terminal styling."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))  # noqa: T201


@contextmanager
def failures_as_json(wanted: bool, **facts: Any) -> Iterator[dict[str, Any]]:
    """On failure, print the reason and the known facts to standard output as JSON.

    The error is raised again, so that it also appears on standard error and sets the exit code.
    """
    try:
        yield facts
    except FloeError as error:
        if wanted:
            known = {name: value for name, value in facts.items() if value is not None}
            print_json({"ok": False, **known, "error": type(error).__name__, "reason": str(error)})
        raise


def table(title: str, rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return rows as a table, or as lists if the screen is too narrow.

    Paths and process keys get a line break after the last slash if the table is too wide without.
    A word that is wider than the screen is folded.
    """
    if not rows:
        return Text(f"{title}: none")
    widths = _widths(rows)
    if widths is None:
        rows = [{name: _break_path(value) for name, value in row.items()} for row in rows]
        widths = _widths(rows)
    if widths is None:
        lists = (Group(Text(""), _facts(row)) for row in rows)
        return Group(Text(title, style="bold"), *lists)
    grid = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name, width in widths.items():
        numeric = any(type(row[name]) is int for row in rows)
        justify: JustifyMethod = "right" if numeric else "left"
        grid.add_column(name, justify=justify, overflow="fold", width=width)
    for row in rows:
        grid.add_row(*(_cell(value) for value in row.values()))
    # A title of the grid itself would be wrapped to the width of the columns.
    return Group(Text(title, style="bold"), grid)


def print_facts(title: str, facts: Mapping[str, Any]) -> None:
    """Print facts, one per line; leave out unknown ones."""
    console.print(Text(title, style="bold"))
    console.print(_facts({name: value for name, value in facts.items() if value != ""}))


def _facts(facts: Mapping[str, Any]) -> Table:
    grid = Table(box=None, show_header=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        if value is not None:
            grid.add_row(name, _cell(value))
    return grid


def _widths(rows: Sequence[Mapping[str, Any]]) -> dict[str, int] | None:
    """Return the columns' widths on this screen; None if they would break words.

    rich would shrink all columns alike, and break words in one while another has room.
    """
    texts = {name: [name, *(_cell(row[name]).plain for row in rows)] for name in rows[0]}
    widths = {name: _longest(word for text in cells for word in text.split())
              for name, cells in texts.items()}  # fmt: skip
    wanted = {name: _longest(line for text in cells for line in text.splitlines())
              for name, cells in texts.items()}  # fmt: skip
    spare = console.width - sum(widths.values()) - PADDING * len(widths) - EDGE
    if spare < 0:
        return None
    # Widen the columns that need least first; what is left goes to the others.
    for left, name in enumerate(sorted(wanted, key=lambda name: wanted[name] - widths[name])):
        more = min(wanted[name] - widths[name], spare // (len(wanted) - left))
        widths[name] += more
        spare -= more
    return widths


def _break_path(value: Any) -> Any:
    if not isinstance(value, str) or "/" not in value or any(map(str.isspace, value)):
        return value
    folder, _, name = value.rpartition("/")
    return f"{folder}/\n{name}"


def _longest(parts: Iterable[str]) -> int:
    return max(map(cell_len, parts), default=1)


def _cell(value: Any) -> Text:
    # Text, not markup: a name may contain square brackets.
    if value is None:
        return Text("–", style="dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, datetime):
        return Text(value.strftime("%Y-%m-%d %H:%M:%SZ"))
    return Text(f"{value:,}" if isinstance(value, int) else str(value))


def fields_of(row: Any) -> dict[str, Any]:
    """Return the fields of a row that the catalog returned."""
    return {name: getattr(row, name) for name in row.__struct_fields__}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if hasattr(value, "__struct_fields__"):
        return fields_of(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
