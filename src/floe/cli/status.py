"""`floe status`: show the state of the services. `floe up` prints the same table."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from floe.cli.context import JsonOption, ProjectOption
from floe.cli.output import console, err, print_json, table
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.services.state import ServiceStatus, Up

Report = Callable[["Up"], None]

# Like service managers: 3 means not running, which is not an error.
DOWN = 3


def status(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Show the services of floe up. Exit: 0 all healthy, 1 not all, 3 none running."""
    from floe.services.child_processes import refresh_states
    from floe.services.state import READY, read_up

    up = read_up(find_project(project))
    if up is None:
        if as_json:
            print_json({"supervisor": None, "services": [], "notes": []})
        else:
            console.print("Nothing is up. Start it with: floe up")
        raise typer.Exit(DOWN)
    seen = refresh_states(up)
    if as_json:
        print_json(to_json(seen))
    else:
        console.print(up_table(seen))
    if not seen.alive:
        err.print("The supervisor was killed. Clean up with: floe up or floe down")
    healthy = seen.alive and all(service.state in READY for service in seen.services)
    raise typer.Exit(0 if healthy else 1)


def up_table(up: "Up") -> RenderableType:
    """Return a table of the services, with their messages below it."""
    rows = [{**_row(service), "since": f"{service.since:%H:%M}Z"} for service in up.services]
    notes = [
        Text(f"{service.name}: {service.message}") for service in up.services if service.message
    ]
    return Group(table("floe", rows), *notes) if rows else Text("No services.")


def to_json(up: "Up") -> dict[str, Any]:
    """Return the state of the services as plain values."""
    services = [
        {**_row(service), "log": str(service.log), "message": service.message}
        for service in up.services
    ]
    supervisor = {"pid": up.pid, "alive": up.alive, "since": up.since}
    return {"supervisor": supervisor, "services": services, "notes": list(up.notes)}


@contextmanager
def shown_live() -> Iterator[Report]:
    """Yield a function that shows the services: a live table, or lines in a log."""
    if not console.is_terminal:
        yield _Lines()
        return
    with Live(console=console, refresh_per_second=4, transient=False) as live:
        yield lambda up: live.update(up_table(up))


class _Lines:
    """Prints each change of a service as a line."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._complete = False

    def __call__(self, up: "Up") -> None:
        for service in up.services:
            line = _line(service)
            if self._shown.get(service.name) != line:
                self._shown[service.name] = line
                console.print(line, markup=False, soft_wrap=True)
        if up.settled and not self._complete:
            self._complete = True
            console.print("Some services failed to start." if up.broken else "All services are up.")


def _line(service: "ServiceStatus") -> str:
    serves = service.address and service.state in ("running", "faulty")
    at = f" at {service.address}" if serves else ""
    message = f": {service.message}" if service.message and service.state != "starting" else ""
    return f"{service.name} is {service.state}{at}{message}"


def _row(service: "ServiceStatus") -> dict[str, Any]:
    return {
        "service": service.name,
        "state": service.state,
        "address": service.address,
        "pid": None if service.pid is None else str(service.pid),
        "since": service.since,
        "restarts": service.restarts,
    }
