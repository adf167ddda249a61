"""`floe up`: start all services of a project, and keep them running."""

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.context import ProjectOption
from floe.cli.output import console, err
from floe.cli.status import shown_live, up_table
from floe.settings import (
    ProjectPaths,
    find_project,
    make_private_file,
    make_private_folder,
    tighten_state,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from floe.execution.site import Site
    from floe.services.plan import UpOptions
    from floe.services.state import Up
    from floe.services.supervisor import StopRequest

LOOK_SECONDS = 0.2


def up(
    *,
    detach: Annotated[
        bool,
        typer.Option(
            "--detach", help="Return once services are up; keep them running in the background."
        ),
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the API; 0 picks a free one.")
    ] = None,
    dagster_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port of Dagster's web interface; 0 picks a free one."),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Only these services, comma-separated: spark, api, dagster.")
    ] = None,
    no_link: Annotated[bool, typer.Option("--no-link", help="Do not print a login link.")] = False,
    project: ProjectOption = None,
) -> None:
    """Start Spark, the API and Dagster on this machine; stop them with Ctrl-C."""
    from floe.execution.spark.lake_catalog import warehouse
    from floe.execution.workspace import load_site
    from floe.services.plan import UpOptions
    from floe.services.state import lock_project

    site = load_site(find_project(project))
    chosen = tuple(name.strip() for name in (only or "").split(",") if name.strip())
    options = UpOptions(chosen, port, dagster_port)
    with lock_project(site.paths) as free:
        if not free:
            raise typer.Exit(_print_already_up(site.paths))
        tighten_state(site.state_dir, leave=[Path(warehouse(site))])
        _repair(site)
        has_pages = not chosen or not {"api", "dagster"}.isdisjoint(chosen)
        link = _make_catalog(site, with_link=not no_link) if has_pages else None
        if not detach:
            raise typer.Exit(_stay(site, options, link))
    # The background process prints to a log, where a login link must not appear.
    arguments = ["--project", str(site.root), "--no-link"]
    arguments += ["--only", only] if only else []
    arguments += [] if port is None else ["--port", str(port)]
    arguments += [] if dagster_port is None else ["--dagster-port", str(dagster_port)]
    raise typer.Exit(_detach(site, arguments, link))


def _repair(site: "Site") -> None:
    """Stop what a killed supervisor left."""
    from floe.services.child_processes import stop_leftovers
    from floe.services.state import read_up

    left = read_up(site.paths)
    if left is not None:
        err.print("The last floe up was killed. Stopping what it left.")
        stop_leftovers(site, left)


def _make_catalog(site: "Site", *, with_link: bool) -> str | None:
    """Create or upgrade the catalog; return the secret of a login link."""
    from floe.cli.context import create_admin, create_login_secret, find_home, open_catalog_at

    home = find_home(site.root)
    with open_catalog_at(home.url) as catalog:
        create_admin(catalog, home.token_file)
        return create_login_secret(catalog, home.token_file) if with_link else None


def _stay(site: "Site", options: "UpOptions", link: str | None) -> int:
    """Keep services up in the foreground until stopped; return the exit code."""
    from floe.services.plan import make_plan
    from floe.services.supervisor import catch_stop_signals, supervise

    plan = make_plan(site, options)
    for note in plan.notes:
        console.print(note, markup=False, soft_wrap=True)
    addresses = {service.name: service.address for service in plan.services}
    _print_login(addresses.get("web") or addresses.get("api"), link)
    console.print("Stop with Ctrl-C or: floe down")
    with catch_stop_signals() as stopping, shown_live() as report:
        last = supervise(site.paths, plan, stopping, report)
    console.print("All services have stopped.")
    return int(last.broken)


def _detach(site: "Site", arguments: "Sequence[str]", link: str | None) -> int:
    """Run the services from a background process; return once they are up."""
    from floe.services.supervisor import catch_stop_signals

    log = site.state_dir / "logs" / "up.log"
    make_private_folder(log.parent)
    make_private_file(log)
    with log.open("wb") as output, catch_stop_signals() as stopping:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "floe.cli", "up", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started = _wait(site.paths, process, stopping)
    if started is None:
        err.print(log.read_text(errors="replace").strip(), markup=False)
        return process.returncode or 1
    console.print(up_table(started))
    for note in started.notes:
        console.print(note, markup=False, soft_wrap=True)
    addresses = {service.name: service.address for service in started.services}
    _print_login(addresses.get("web") or addresses.get("api"), link)
    console.print("Services keep running in the background. Check: floe status. Stop: floe down")
    return int(started.broken)


def _wait(
    paths: ProjectPaths, process: "subprocess.Popen[bytes]", stopping: "StopRequest"
) -> "Up | None":
    """Show the start; return the settled state, or None if the process has ended."""
    from floe.services.state import read_up

    signals = 0
    with shown_live() as report:
        while process.poll() is None:
            if stopping.count > signals:
                signals = stopping.count
                process.terminate()
            state = read_up(paths)
            if state is not None and state.pid == process.pid:
                report(state)
                if state.settled and not stopping.requested:
                    return state
            time.sleep(LOOK_SECONDS)
    return None


def _print_already_up(paths: ProjectPaths) -> int:
    from floe.services.state import read_up

    state = read_up(paths)
    console.print("floe is already up. Check: floe status. Stop: floe down")
    if state is None:
        return 0
    console.print(up_table(state))
    return int(state.broken)


def _print_login(url: str | None, secret: str | None) -> None:
    if url is None:
        return
    if secret is None:
        console.print(f"Log in at {url}/login with your token.", markup=False, soft_wrap=True)
        return
    from floe.api.login import login_link

    link = f"Log in with this link (works once, within an hour): {login_link(url, secret)}"
    console.print(link, markup=False, soft_wrap=True)
    console.print("Get another link with: floe session link")
