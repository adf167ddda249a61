"""`floe api`: serve the catalog over HTTP."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.context import (
    Home,
    ProjectOption,
    create_admin,
    create_login_secret,
    date_rules,
    event_retention,
    find_bare_home,
    find_home,
    open_catalog_at,
    write_secret,
)
from floe.cli.output import console, print_json
from floe.settings import find_project, tighten_state

if TYPE_CHECKING:
    from floe.catalog import Catalog
    from floe.events.forwarding import Forwarder


def api(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on (default: this machine only).")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")
    ] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Require no token; listen on this machine only.")
    ] = False,
    openapi: Annotated[
        bool, typer.Option("--openapi", help="Print the OpenAPI document and exit.")
    ] = False,
    project: ProjectOption = None,
) -> None:
    """Serve the catalog over HTTP: receive events and answer queries."""
    if openapi:
        from floe.api import describe_api

        print_json(describe_api())
        return
    # Modules are never freed, so garbage collection would only slow down the start.
    gc.disable()
    from floe.api.server import listen, local_url_of, serve, url_of

    home = find_home(project)
    tighten_state(home.paths.state_dir, leave=[home.paths.state_dir / "lake"])
    listener = listen(
        home.host if host is None else host, home.port if port is None else port, login=not no_auth
    )
    from floe.api import create_app
    from floe.api.hosts import Hosts
    from floe.events.writer import WriterSettings, fork_writer, reduce_garbage_collection

    dates = date_rules(project)
    # Fork now: all shared modules are loaded, and no connection is open yet.
    gc.freeze()
    writer = fork_writer(WriterSettings(home.url, dates.patterns), listener)
    address = _publish_address(home, local_url_of(listener))
    with listener, writer.line, open_catalog_at(home.url) as catalog, address:
        first = None if no_auth else create_admin(catalog, home.token_file)
        served = create_app(
            catalog,
            login=not no_auth,
            hosts=Hosts.of(home.public_url, url_of(listener)),
            lake=home.lake,
            retention=event_retention(project),
            dates=dates,
            writer=writer,
            forwarders=_make_forwarders(catalog, project),
        )
        wants_link = not no_auth and (first is not None or sys.stdout.isatty())
        link = create_login_secret(catalog, home.token_file) if wants_link else None
        welcome = partial(_welcome, url_of(listener), home, link, login=not no_auth)
        reduce_garbage_collection()
        serve(served, listener, welcome)
    console.print("floe api has stopped. All received events are stored.")


def _make_forwarders(catalog: "Catalog", project: Path | None) -> "list[Forwarder]":
    """Return a forwarder for each OpenLineage server of the platform."""
    if find_bare_home(project):
        return []
    from floe.events.forwarding import Destination, Forwarder
    from floe.execution.os_processes import is_dead, new_holder
    from floe.spec import load_platform
    from floe.spec.secrets import reveal

    platform = load_platform(find_project(project), os.environ)
    secrets = Path(platform.secrets.folder)
    destinations = [
        Destination(
            server.url,
            {name: reveal(value, os.environ, secrets) for name, value in server.headers.items()},
        )
        for server in platform.observability.openlineage
    ]
    return [Forwarder(catalog, server, new_holder(), is_dead) for server in destinations]


@contextmanager
def _publish_address(home: Home, url: str) -> Iterator[None]:
    """Keep the API's address in a file of the project while it runs.

    Jobs and commands read it. Of two running APIs, the later one is used.
    """
    file = home.address_file
    write_secret(file, url)
    try:
        yield
    finally:
        if file.is_file() and file.read_text(encoding="ascii").strip() == url:
            file.unlink(missing_ok=True)


def _welcome(url: str, home: Home, link: str | None, *, login: bool) -> None:
    lines = [f"floe api is at {url}"]
    if not login:
        lines.append("No login required: every user of this machine has full access.")
    elif link is not None:
        from floe.api.login import login_link

        lines.append(f"Log in with this link (works once, within an hour): {login_link(url, link)}")
    else:
        lines.append("Log in with your token, or get a link with: floe session link")
    if login and home.token_file.is_file():
        lines.append(f"Commands in this folder use the token in {home.token_file}.")
    if login:
        lines.append("Create more tokens with: floe token create --name NAME --role ROLE")
    if login and home.token_file.is_file():
        curl = f'curl -H "Authorization: Bearer $(cat {home.token_file})"'
        lines.append(f"Try: {curl} {url}/api/v1/stats")
    lines.append("Stop with Ctrl-C.")
    typer.echo("\n".join(lines))
