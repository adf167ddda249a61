"""`floe spark`: start, stop and inspect the project's Spark server."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.context import JsonOption, ProjectOption
from floe.cli.output import console, err, print_facts, print_json
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.execution.jars import Progress
    from floe.execution.site import Site
    from floe.execution.spark.server import ServerStatus

app = typer.Typer(help="Start, stop and inspect the project's Spark server.", no_args_is_help=True)

ProfileOption = Annotated[
    str | None, typer.Option(help="Compute profile of platform.yaml (default: the project's).")
]
# As in service managers: 3 means not running, which is not an error.
EXIT_CODES = {"running": 0, "foreign": 0, "starting": 0, "stopped": 3, "died": 1}


@app.command()
def start(project: ProjectOption = None, profile: ProfileOption = None) -> None:
    """Start the server if it is not running. Commands also start it when needed."""
    from floe.execution.spark.server import ensure_server, server_status

    site = _site(project)
    before = server_status(site, profile=profile).pid
    with _shown_progress() as progress:
        server = ensure_server(site, progress, profile=profile)
    state = "is already running" if server.pid in (None, before) else "has started"
    console.print(f"Spark {state} at {server.address}", markup=False, soft_wrap=True)


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
    """Show the server's state. Exit codes: 0 running, 3 not running, 1 died."""
    from floe.execution.spark.server import server_status

    server = server_status(_site(project), profile=profile)
    if as_json:
        print_json({**asdict(server), "log": server.log and str(server.log)})
    else:
        _show(server)
    raise typer.Exit(EXIT_CODES[server.state])


@app.command()
def logs(
    project: ProjectOption = None,
    profile: ProfileOption = None,
    count: Annotated[int, typer.Option("--lines", "-n", min=0, help="Number of lines.")] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing new lines until Ctrl-C.")
    ] = False,
) -> None:
    """Show the end of the server's log."""
    from floe.execution.spark.server import find_log
    from floe.execution.spark.server_files import follow_lines, last_lines

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
    """Show progress: a spinner on a terminal, lines in a log."""
    if not err.is_terminal:
        yield lambda line: err.print(line, markup=False)
        return
    with err.status("looking for Spark") as shown:
        yield shown.update


def _show(server: "ServerStatus") -> None:
    words = {"foreign": "managed elsewhere", "stopped": "not running"}
    print_facts(
        "Spark",
        {
            "state": words.get(server.state, server.state),
            "address": server.address,
            "master": server.master,
            "process": server.pid and str(server.pid),
            "started": server.started_at,
            "clients": server.clients,
            "log": server.log,
            "last output": "\n".join(server.last_output),
            "next": _next_step(server),
        },
    )


def _next_step(server: "ServerStatus") -> str | None:
    if server.outdated:
        return "The platform's settings have changed: Spark restarts when no client is connected."
    steps = {"died": "Spark restarts when needed, or with: floe spark start"}
    return steps.get(server.state)
