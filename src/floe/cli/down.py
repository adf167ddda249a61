"""`floe down`: stop what `floe up` has brought up."""

import os
import signal
from contextlib import suppress

import typer

from floe.cli.options import ProjectOption
from floe.cli.output import console
from floe.settings import find_project

PATIENCE_SECONDS = 180.0


def down(project: ProjectOption = None) -> None:
    """Stop everything that floe up has started, here or in another terminal."""
    from floe.execution.spark.processes import wait_until
    from floe.execution.workspace import load_site
    from floe.services.leftovers import end_leftovers
    from floe.services.state import read_up

    paths = find_project(project)
    found = read_up(paths)
    if found is None:
        console.print("Nothing is up.")
        raise typer.Exit
    if found.alive:
        with suppress(ProcessLookupError):
            os.kill(found.pid, signal.SIGTERM)
        with console.status("stopping"):
            wait_until(lambda: not found.alive, PATIENCE_SECONDS)
    if found.alive:
        with suppress(ProcessLookupError):
            os.kill(found.pid, signal.SIGKILL)
        wait_until(lambda: not found.alive, 10)
    left = read_up(paths)
    if left is not None:
        end_leftovers(load_site(paths), left)
    console.print("Everything has stopped.")
