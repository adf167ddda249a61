"""`floe api`: serve the catalog over HTTP."""

import gc
import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from floe import clock
from floe.cli.context import CATALOG_FILE, catalog_url, date_rules, event_retention, find_bare_home
from floe.cli.options import ProjectOption
from floe.cli.output import console, print_json
from floe.settings import ProjectPaths, find_project, make_private_folder, tighten_state

if TYPE_CHECKING:
    from floe.catalog import Catalog
    from floe.catalog.principals import NewToken

TOKEN_FILE, ADDRESS_FILE = "token", "address"
DEFAULT_HOST, DEFAULT_PORT, DEFAULT_LAKE = "127.0.0.1", 8765, "lake"


@dataclass(frozen=True)
class Home:
    """Where a catalog is at home: in a project, or in a folder that has none yet."""

    paths: ProjectPaths
    url: str
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    lake: str = DEFAULT_LAKE
    public_url: str | None = None

    @property
    def token_file(self) -> Path:
        return self.paths.state_dir / TOKEN_FILE

    @property
    def address_file(self) -> Path:
        return self.paths.state_dir / ADDRESS_FILE


def api(
    host: Annotated[
        str | None, typer.Option(help="The address to listen on (default: this machine only).")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")
    ] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Let everybody on this machine in without a token.")
    ] = False,
    openapi: Annotated[
        bool, typer.Option("--openapi", help="Print the OpenAPI document and stop.")
    ] = False,
    project: ProjectOption = None,
) -> None:
    """Serve the catalog over HTTP: events come in, everything known can be asked for."""
    if openapi:
        from floe.api import describe_api

        print_json(describe_api())
        return
    # What is loaded now stays for good: to look for garbage in it would only slow the start.
    gc.disable()
    from floe.api.server import listen, local_url_of, serve, url_of

    home = find_home(project)
    tighten_state(home.paths.state_dir, leave=[home.paths.state_dir / "lake"])
    listener = listen(
        home.host if host is None else host, home.port if port is None else port, login=not no_auth
    )
    from floe.api import create_app
    from floe.api.hosts import Hosts
    from floe.events.writer import Orders, fork_writer, let_collector_rest

    dates = date_rules(project)
    # What the two share is loaded by now, and nothing is open yet.
    gc.freeze()
    writer = fork_writer(Orders(home.url, dates.patterns), listener)
    found = _found_at(home, local_url_of(listener))
    with listener, writer.line, open_home(home) as catalog, found:
        first = None if no_auth else make_admin(catalog, home.token_file)
        served = create_app(
            catalog,
            login=not no_auth,
            hosts=Hosts.of(home.public_url, url_of(listener)),
            lake=home.lake,
            retention=event_retention(project),
            dates=dates,
            writer=writer,
        )
        shown = first is not None or sys.stdout.isatty()
        link = new_link(catalog, home.token_file) if shown and not no_auth else None
        welcome = partial(_welcome, url_of(listener), home, link, login=not no_auth)
        let_collector_rest()
        serve(served, listener, welcome)
    console.print("floe api has stopped; everything that came in is written.")


def find_home(project: Path | None) -> Home:
    """Find the catalog's place. A folder without a project gets a catalog of its own."""
    if bare := find_bare_home(project):
        return _home_without_project(bare)
    paths = find_project(project)
    from floe.spec import load_platform

    platform = load_platform(paths, os.environ)
    return Home(
        paths,
        catalog_url(project),
        platform.api.host,
        platform.api.port,
        platform.lake.name,
        platform.api.url,
    )


def _home_without_project(paths: ProjectPaths) -> Home:
    url = os.environ.get("FLOE_CATALOG_URL") or f"sqlite:///{paths.state_dir / CATALOG_FILE}"
    return Home(paths, url)


@contextmanager
def open_home(home: Home) -> Iterator["Catalog"]:
    """Open the catalog, its tables in the shape that this version needs."""
    from floe.catalog import open_ready_catalog

    catalog = open_ready_catalog(home.url)
    try:
        yield catalog
    finally:
        catalog.close()


def make_admin(catalog: "Catalog", token_file: Path) -> "NewToken | None":
    """Make the first administrator, its token in a file that only this user can read."""
    from floe.catalog.principals import create_first_admin

    with catalog.writing() as session:
        first = create_first_admin(session, actor="floe api")
        if first is not None:
            # Before the commit: a token that nobody has would lock everybody out.
            write_secret(token_file, first.text)
    return first


def new_link(catalog: "Catalog", token_file: Path, name: str | None = None) -> str | None:
    """Return the secret of a one-time login link; None if it is not known who asks.

    Whoever asks is the principal of the token in the project's folder. The owner of an embedded
    catalog may do everything with it, also without that token.
    """
    from floe.catalog.logins import create_link
    from floe.catalog.principals import ADMIN_NAME, find_principal, find_token, hash_token

    with catalog.writing() as session:
        if name is None and token_file.is_file():
            text = token_file.read_text(encoding="utf-8").strip()
            known = find_token(session, hash_token(text), clock.now())
            name = None if known is None else known.identity.name
        if name is None and catalog.store.name == "sqlite":
            name = find_principal(session, ADMIN_NAME)
        return None if name is None else create_link(session, name, actor=getpass.getuser())


@contextmanager
def _found_at(home: Home, url: str) -> Iterator[None]:
    """Keep the address where jobs and commands of the project look for it, while it holds.

    One that a killed API left is overwritten by the next; of two at once the later one counts.
    """
    file = home.address_file
    write_secret(file, url)
    try:
        yield
    finally:
        if file.is_file() and file.read_text(encoding="ascii").strip() == url:
            file.unlink(missing_ok=True)


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read, at no moment half of it or open to others."""
    make_private_folder(path.parent)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _welcome(url: str, home: Home, link: str | None, *, login: bool) -> None:
    lines = [f"floe api is at {url}"]
    if not login:
        lines.append("Nobody has to log in: everybody on this machine may do everything.")
    elif link is not None:
        from floe.api.login import login_link

        lines.append(f"Log in with this link, once within an hour: {login_link(url, link)}")
    else:
        lines.append("Log in with your token, or get a link with: floe session link")
    if login and home.token_file.is_file():
        lines.append(f"Commands in this folder use the token in {home.token_file}.")
    if login:
        lines.append("Make more tokens with: floe token create --name NAME --role ROLE")
    if login and home.token_file.is_file():
        sent = f'curl -H "Authorization: Bearer $(cat {home.token_file})"'
        lines.append(f"Try: {sent} {url}/api/v1/stats")
    lines.append("Stop with Ctrl-C.")
    typer.echo("\n".join(lines))
