"""What commands print: tables that fit the screen for people, JSON for scripts."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

console = Console(highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False, soft_wrap=True)
PADDING, EDGE = 3, 1
"""What each column of a table takes beside its text, and the table beside its columns."""


def print_json(value: object) -> None:
    """Print one JSON document to standard output, untouched by terminal styling."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))  # noqa: T201


def table(title: str, rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """A table of rows with the same keys; where it would break words, a list for each row.

    A word that is wider than the screen folds instead of leaving it.
    """
    if not rows:
        return Text(f"{title}: none")
    widths = _widths(rows)
    if widths is None:
        lists = (_facts(row) for row in rows)
        return Group(Text(title, style="bold"), *(Group(Text(""), one) for one in lists))
    grid = Table(box=SIMPLE_HEAD)
    for name, width in widths.items():
        number = any(type(row[name]) is int for row in rows)
        justify: JustifyMethod = "right" if number else "left"
        grid.add_column(name, justify=justify, overflow="fold", width=width)
    for row in rows:
        grid.add_row(*(_cell(value) for value in row.values()))
    # rich would wrap a title of its own to the width of the columns.
    return Group(Text(title, style="bold"), grid)


def print_facts(title: str, facts: Mapping[str, Any]) -> None:
    """Print what is known of one thing, a line a fact; what is not known is left out."""
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
    """As wide as the screen lets columns be; None if that breaks words.

    rich alone would take from every column alike, and break the words of one to keep the spaces
    of another.
    """
    texts = {name: [name, *(_cell(row[name]).plain for row in rows)] for name in rows[0]}
    widths = {name: _longest(word for text in said for word in text.split())
              for name, said in texts.items()}  # fmt: skip
    wanted = {name: _longest(line for text in said for line in text.splitlines())
              for name, said in texts.items()}  # fmt: skip
    spare = console.width - sum(widths.values()) - PADDING * len(widths) - EDGE
    if spare < 0:
        return None
    # Those that lack least come first: what they leave is for the others.
    for left, name in enumerate(sorted(wanted, key=lambda one: wanted[one] - widths[one])):
        more = min(wanted[name] - widths[name], spare // (len(wanted) - left))
        widths[name] += more
        spare -= more
    return widths


def _longest(parts: Iterable[str]) -> int:
    return max(map(cell_len, parts), default=1)


def _cell(value: Any) -> Text:
    # Text, not markup: a name may hold square brackets.
    if value is None:
        return Text("–", style="dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, datetime):
        return Text(value.strftime("%Y-%m-%d %H:%M:%SZ"))
    return Text(f"{value:,}" if isinstance(value, int) else str(value))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"{type(value).__name__} has no JSON form")
