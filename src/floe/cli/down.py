"""`floe down`: stop the services that `floe up` started."""

import os
import signal
from contextlib import suppress

import typer

from floe.cli.context import ProjectOption
from floe.cli.output import console
from floe.settings import find_project

PATIENCE_SECONDS = 180.0


def down(project: ProjectOption = None) -> None:
    """Stop all services that floe up started, here or in another terminal."""
    from floe.execution.os_processes import wait_until
    from floe.execution.workspace import load_site
    from floe.services.child_processes import stop_leftovers
    from floe.services.state import read_up

    paths = find_project(project)
    up = read_up(paths)
    if up is None:
        console.print("Nothing is up.")
        raise typer.Exit
    if up.alive:
        with suppress(ProcessLookupError):
            os.kill(up.pid, signal.SIGTERM)
        with console.status("stopping"):
            wait_until(lambda: not up.alive, PATIENCE_SECONDS)
    if up.alive:
        with suppress(ProcessLookupError):
            os.kill(up.pid, signal.SIGKILL)
        wait_until(lambda: not up.alive, 10)
    left = read_up(paths)
    if left is not None:
        stop_leftovers(load_site(paths), left)
    console.print("All services have stopped.")
