"""How services are shown: a table that moves in a terminal, a line for each change in a log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from floe.cli.output import console, table

if TYPE_CHECKING:
    from floe.services.state import Standing, Up

Report = Callable[["Up"], None]


def up_table(up: "Up") -> RenderableType:
    """Return a table of the services, and below it what there is to say about them."""
    rows = [{**_row(one), "since": f"{one.since:%H:%M:%S}"} for one in up.services]
    said = [Text(f"{one.name}: {one.said}") for one in up.services if one.said]
    return Group(table("floe", rows), *said) if rows else Text("No service.")


def to_json(up: "Up") -> dict[str, Any]:
    """Return the same for programs."""
    services = [{**_row(one), "log": str(one.log), "said": one.said} for one in up.services]
    supervisor = {"pid": up.pid, "alive": up.alive, "since": up.since}
    return {"supervisor": supervisor, "services": services, "notes": list(up.notes)}


@contextmanager
def shown_live() -> Iterator[Report]:
    """Give a function that shows how things stand, whenever it is told."""
    if not console.is_terminal:
        yield _Lines()
        return
    with Live(console=console, refresh_per_second=4, transient=False) as live:
        yield lambda up: live.update(up_table(up))


class _Lines:
    """Says what is new, a line each."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._complete = False

    def __call__(self, up: "Up") -> None:
        for one in up.services:
            line = _line(one)
            if self._shown.get(one.name) != line:
                self._shown[one.name] = line
                console.print(line, markup=False, soft_wrap=True)
        if up.settled and not self._complete:
            self._complete = True
            console.print("Not everything came up." if up.broken else "Everything is up.")


def _line(one: "Standing") -> str:
    at = f" at {one.address}" if one.address and one.state in ("running", "faulty") else ""
    said = f": {one.said}" if one.said and one.state != "starting" else ""
    return f"{one.name} is {one.state}{at}{said}"


def _row(one: "Standing") -> dict[str, Any]:
    return {
        "service": one.name,
        "state": one.state,
        "address": one.address,
        "pid": None if one.pid is None else str(one.pid),
        "since": one.since,
        "restarts": one.restarts,
    }
