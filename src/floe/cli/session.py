"""`floe session`: create login links; list and revoke sessions."""

import getpass
from pathlib import Path
from typing import Annotated, Any

import typer

from floe.cli.context import (
    JsonOption,
    ProjectOption,
    create_login_secret,
    find_home,
    open_catalog_at,
)
from floe.cli.output import console, print_json, table
from floe.errors import FloeError
from floe.settings import ProjectPaths

app = typer.Typer(help="Create login links; list and revoke sessions.", no_args_is_help=True)


class NotRunningError(FloeError):
    """No web interface is running."""

    def __init__(self) -> None:
        super().__init__("Neither Dagster nor the API is running here. Start them with: floe up")


class UnknownCallerError(FloeError):
    """No valid token says who the login link is for."""

    def __init__(self, token_file: Path) -> None:
        super().__init__(
            f"No valid token in {token_file} says who you are. Choose who logs in with --name NAME."
        )


@app.command()
def link(
    name: Annotated[
        str | None, typer.Option(help="Who logs in (default: owner of the token in .floe/token).")
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a login link for Dagster and the API. It works once, within an hour."""
    from floe.api.login import login_link

    home = find_home(project)
    address = web_address_of(home.paths)
    if address is None:
        raise NotRunningError
    with open_catalog_at(home.url) as catalog:
        secret = create_login_secret(catalog, home.token_file, name)
    if secret is None:
        raise UnknownCallerError(home.token_file)
    text = login_link(address, secret)
    if as_json:
        print_json({"link": text})
    else:
        typer.echo(text)


@app.command("list")
def list_all(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """List sessions and unused login links, newest first."""
    from floe.catalog.logins import list_sessions

    with open_catalog_at(find_home(project).url) as catalog, catalog.reading() as session:
        rows = [dict(row._mapping) for row in list_sessions(session)]
    if as_json:
        print_json(rows)
    elif rows:
        console.print(table("sessions", [_session_row(row) for row in rows]))
    else:
        console.print("Nobody has logged in yet. Get a link with: floe session link")


@app.command()
def revoke(
    session_id: Annotated[int, typer.Argument(help="Id of the session, from floe session list.")],
    project: ProjectOption = None,
) -> None:
    """Revoke a session or an unused login link. Servers apply it within seconds."""
    from floe.catalog.logins import revoke_session

    with open_catalog_at(find_home(project).url) as catalog, catalog.writing() as session:
        changed = revoke_session(session, session_id, actor=getpass.getuser())
    state = "is revoked" if changed else "was already revoked"
    console.print(f"Session {session_id} {state}.")


def web_address_of(paths: ProjectPaths) -> str | None:
    """Return where people log in: Dagster if it is up, else the API, else None."""
    from floe.services.state import read_up

    up = read_up(paths)
    if up is not None and up.alive:
        addresses = {service.name: service.address for service in up.services}
        return addresses.get("web") or addresses.get("api")
    file = paths.state_dir / "address"
    return file.read_text(encoding="ascii").strip() if file.is_file() else None


def _session_row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["session_id"],
        "name": row["name"],
        "opened": row["opened_at"],
        "last used": row["last_used_at"],
        "valid until": "revoked" if row["revoked_at"] else row["expires_at"],
        "browser": row["browser"],
    }
