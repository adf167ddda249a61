"""`floe spark`: start, stop and look after the project's Spark server."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, err, print_facts, print_json
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.execution.jars import Progress
    from floe.execution.site import Site
    from floe.execution.spark.server import ServerStatus

app = typer.Typer(
    help="Start, stop and look after the project's Spark server.", no_args_is_help=True
)

ProfileOption = Annotated[
    str | None, typer.Option(help="The compute profile of platform.yaml (default: the project's).")
]
# As service managers have it: 3 says that nothing runs, and that this is not wrong.
EXIT_CODES = {"running": 0, "foreign": 0, "starting": 0, "stopped": 3, "died": 1}


@app.command()
def start(project: ProjectOption = None, profile: ProfileOption = None) -> None:
    """Start the server, unless it runs. Commands that need it do so by themselves."""
    from floe.execution.spark.server import ensure_server, server_status

    site = _site(project)
    before = server_status(site, profile=profile).pid
    with _shown_progress() as progress:
        server = ensure_server(site, progress, profile=profile)
    said = "runs already" if server.pid in (None, before) else "has started"
    console.print(f"Spark {said} at {server.address}", markup=False, soft_wrap=True)


@app.command()
def stop(project: ProjectOption = None, profile: ProfileOption = None) -> None:
    """Stop the server. Runs that use it fail."""
    from floe.execution.spark.server import stop_server

    stopped = stop_server(_site(project), profile=profile)
    console.print("Spark has stopped." if stopped else "Spark was not running.")


@app.command()
def status(
    project: ProjectOption = None, profile: ProfileOption = None, as_json: JsonOption = False
) -> None:
    """Say how the server is. Exit 0: it runs; 3: it does not; 1: it has died."""
    from floe.execution.spark.server import server_status

    found = server_status(_site(project), profile=profile)
    if as_json:
        print_json({**asdict(found), "log": found.log and str(found.log)})
    else:
        _show(found)
    raise typer.Exit(EXIT_CODES[found.state])


@app.command()
def logs(
    project: ProjectOption = None,
    profile: ProfileOption = None,
    count: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
) -> None:
    """Show the end of the server's log."""
    from floe.execution.spark.logs import follow_lines, last_lines
    from floe.execution.spark.server import find_log

    log = find_log(_site(project), profile=profile)
    for line in last_lines(log, count):
        typer.echo(line)
    if follow:
        for line in follow_lines(log):
            typer.echo(line)


def _site(project: Path | None) -> "Site":
    from floe.execution.workspace import load_site

    return load_site(find_project(project))


@contextmanager
def _shown_progress() -> Iterator["Progress"]:
    """Show what is going on: moving in a terminal, a line each in a log."""
    if not err.is_terminal:
        yield lambda line: err.print(line, markup=False)
        return
    with err.status("looking for Spark") as shown:
        yield shown.update


def _show(found: "ServerStatus") -> None:
    words = {"foreign": "not floe's own", "stopped": "not running"}
    print_facts(
        "Spark",
        {
            "state": words.get(found.state, found.state),
            "address": found.address,
            "master": found.master,
            "process": found.pid and str(found.pid),
            "started": found.started_at,
            "clients": found.clients,
            "log": found.log,
            "it said": "\n".join(found.said),
            "next": _next_step(found),
        },
    )


def _next_step(found: "ServerStatus") -> str | None:
    if found.outdated:
        return "The platform's settings have changed: it restarts when no client is connected."
    steps = {"died": "It is started again when needed, or by: floe spark start"}
    return steps.get(found.state)
