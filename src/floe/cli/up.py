"""`floe up`: bring up everything that a project needs, and keep it up."""

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.options import ProjectOption
from floe.cli.output import console, err
from floe.cli.service_views import shown_live, up_table
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
    from floe.services.plan import Wanted
    from floe.services.state import Up
    from floe.services.supervisor import Stopping

LOOK_SECONDS = 0.2


def up(
    *,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return once services are up; keep them running.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The API's port; 0 for any that is free.")
    ] = None,
    dagster_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="The port of Dagster's web interface; 0 for any."),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Only these, with commas between: spark, api, dagster.")
    ] = None,
    no_link: Annotated[
        bool, typer.Option("--no-link", help="Do not print a login link: for logs.")
    ] = False,
    project: ProjectOption = None,
) -> None:
    """Bring up Spark, the catalog, the API and Dagster on this machine only; Ctrl-C ends all."""
    from floe.execution.spark.lake import warehouse
    from floe.execution.workspace import load_site
    from floe.services.plan import Wanted
    from floe.services.state import held

    site = load_site(find_project(project))
    chosen = tuple(name.strip() for name in (only or "").split(",") if name.strip())
    wanted = Wanted(chosen, port, dagster_port)
    with held(site.paths) as free:
        if not free:
            raise typer.Exit(_say_up(site.paths))
        tighten_state(site.state_dir, leave=[Path(warehouse(site))])
        _repair(site)
        has_pages = not chosen or not {"api", "dagster"}.isdisjoint(chosen)
        link = _make_catalog(site, with_link=not no_link) if has_pages else None
        if not detach:
            raise typer.Exit(_stay(site, wanted, link))
    # What the other process prints goes to a log, where no link belongs.
    arguments = ["--project", str(site.root), "--no-link"]
    arguments += ["--only", only] if only else []
    arguments += [] if port is None else ["--port", str(port)]
    arguments += [] if dagster_port is None else ["--dagster-port", str(dagster_port)]
    raise typer.Exit(_detach(site, arguments, link))


def _repair(site: "Site") -> None:
    """End what a supervisor that was killed has left."""
    from floe.services.leftovers import end_leftovers
    from floe.services.state import read_up

    left = read_up(site.paths)
    if left is not None:
        err.print("The last floe up was killed: stopping what it left.")
        end_leftovers(site, left)


def _make_catalog(site: "Site", *, with_link: bool) -> str | None:
    """Create or upgrade the catalog; return the secret of a login link for the folder's owner."""
    from floe.cli.api import find_home, make_admin, new_link, open_home

    home = find_home(site.root)
    with open_home(home) as catalog:
        make_admin(catalog, home.token_file)
        return new_link(catalog, home.token_file) if with_link else None


def _stay(site: "Site", wanted: "Wanted", link: str | None) -> int:
    """Keep services up in the foreground until stopped; return the exit code."""
    from floe.services.plan import make_plan
    from floe.services.supervisor import stopped_by_signals, supervise

    plan = make_plan(site, wanted)
    for note in plan.notes:
        console.print(note, markup=False, soft_wrap=True)
    addresses = {one.name: one.address for one in plan.services}
    _say_login(addresses.get("web") or addresses.get("api"), link)
    console.print("Stop with Ctrl-C, or with: floe down")
    with stopped_by_signals() as stopping, shown_live() as report:
        last = supervise(site.paths, plan, stopping, report)
    console.print("Everything has stopped.")
    return int(last.broken)


def _detach(site: "Site", arguments: "Sequence[str]", link: str | None) -> int:
    """Let another process keep everything up; come back when it is."""
    from floe.services.supervisor import stopped_by_signals

    log = site.state_dir / "logs" / "up.log"
    make_private_folder(log.parent)
    make_private_file(log)
    with log.open("wb") as output, stopped_by_signals() as stopping:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "floe.cli", "up", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        found = _wait(site.paths, process, stopping)
    if found is None:
        err.print(log.read_text(errors="replace").strip(), markup=False)
        return process.returncode or 1
    console.print(up_table(found))
    for note in found.notes:
        console.print(note, markup=False, soft_wrap=True)
    addresses = {one.name: one.address for one in found.services}
    _say_login(addresses.get("web") or addresses.get("api"), link)
    console.print(
        "It keeps running in the background. Look with: floe status. Stop with: floe down"
    )
    return int(found.broken)


def _wait(
    paths: ProjectPaths, process: "subprocess.Popen[bytes]", stopping: "Stopping"
) -> "Up | None":
    """Show how it comes up; return how it stands in the end, None if it has ended."""
    from floe.services.state import read_up

    told = 0
    with shown_live() as report:
        while process.poll() is None:
            if stopping.count > told:
                told = stopping.count
                process.terminate()
            found = read_up(paths)
            if found is not None and found.pid == process.pid:
                report(found)
                if found.settled and not stopping.asked:
                    return found
            time.sleep(LOOK_SECONDS)
    return None


def _say_up(paths: ProjectPaths) -> int:
    from floe.services.state import read_up

    found = read_up(paths)
    console.print("floe is up already. Look with: floe status. Stop with: floe down")
    if found is None:
        return 0
    console.print(up_table(found))
    return int(found.broken)


def _say_login(url: str | None, secret: str | None) -> None:
    if url is None:
        return
    if secret is None:
        console.print(f"Log in at {url}/login with your token.", markup=False, soft_wrap=True)
        return
    from floe.api.login import login_link

    link = f"Log in with this link, once within an hour: {login_link(url, secret)}"
    console.print(link, markup=False, soft_wrap=True)
    console.print("Get another one with: floe session link")
