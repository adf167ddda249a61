"""What commands print: tables that fit the screen for people, JSON for scripts."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

console = Console(highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: object) -> None:
    """Print one JSON document to standard output, untouched by terminal styling."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))  # noqa: T201


def table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """A table of rows with the same keys. Long cells fold instead of leaving the screen."""
    grid = Table(title=title, title_justify="left", box=SIMPLE_HEAD, title_style="bold")
    for name in rows[0]:
        number = any(type(row[name]) is int for row in rows)
        grid.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(_cell(value) for value in row.values()))
    return grid


def print_facts(title: str, facts: Mapping[str, Any]) -> None:
    """Print what is known of one thing, a line a fact; what is not known is left out."""
    grid = Table(box=None, show_header=False)
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        if value not in (None, ""):
            grid.add_row(name, _cell(value))
    console.print(Text(title, style="bold"))
    console.print(grid)


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
