"""`floe token`: make, list and revoke the tokens by which people and jobs are known."""

import getpass
from datetime import timedelta
from typing import Annotated, Any

import typer

from floe.cli.api import find_home, open_home
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json, table
from floe.errors import FloeError

app = typer.Typer(
    help="Make, list and revoke the tokens by which people and jobs are known.",
    no_args_is_help=True,
)

ROLES_HELP = "PLATFORM_ADMIN, DATA_STEWARD, DATA_OWNER, DATA_CONSUMER or INGEST."


class ExpiryError(FloeError):
    """The lifetime of a token is invalid, or zero."""

    exit_code = 2

    def __init__(self, text: str) -> None:
        super().__init__(
            f"'{text}' is not a lifetime. Write it as 30s, 12h, 90d or 52w; up to 1000 years."
        )


@app.command()
def create(
    *,
    name: Annotated[str, typer.Option(help="Who will use it: a person or a program.")],
    role: Annotated[str, typer.Option(help=ROLES_HELP)],
    expires: Annotated[
        str | None, typer.Option(help="How long it is valid, as 12h or 90d (default: forever).")
    ] = None,
    team: Annotated[
        str | None, typer.Option(help="Its team: a DATA_OWNER may change what this team owns.")
    ] = None,
    email: Annotated[
        str | None, typer.Option(help="Its address, which may own datasets as well.")
    ] = None,
    scope: Annotated[
        list[str] | None, typer.Option(help="Only for this: read, ingest or all (by its role).")
    ] = None,
    project: ProjectOption = None,
) -> None:
    """Make a token and print it, alone and this once: only its hash is kept."""
    from floe.catalog.principals import create_token

    lasts = None if expires is None else _lifetime(expires)
    with open_home(find_home(project)) as catalog, catalog.writing() as session:
        token = create_token(
            session,
            name,
            role.upper(),
            actor=getpass.getuser(),
            team=team,
            email=email,
            lasts=lasts,
            scopes=scope or (),
        )
    typer.echo(token.text)


@app.command("list")
def list_all(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """List the tokens: whose, in which role, and until when."""
    from floe.catalog.principals import list_tokens

    with open_home(find_home(project)) as catalog, catalog.reading() as session:
        rows = [dict(row._mapping) for row in list_tokens(session)]
    if as_json:
        print_json(rows)
    elif rows:
        console.print(table("tokens", [_shown(row) for row in rows]))
    else:
        console.print("There is no token yet. Make one with: floe token create --name N --role R")


@app.command()
def revoke(
    token_id: Annotated[int, typer.Argument(help="Its number, as floe token list shows it.")],
    project: ProjectOption = None,
) -> None:
    """Refuse a token from now on. Running API servers follow within seconds."""
    from floe.catalog.principals import revoke_token

    with open_home(find_home(project)) as catalog, catalog.writing() as session:
        changed = revoke_token(session, token_id, actor=getpass.getuser())
    said = "is revoked" if changed else "was revoked before"
    console.print(f"Token {token_id} {said}.")


def _lifetime(text: str) -> timedelta:
    from pydantic_core import PydanticCustomError

    from floe.spec.values import parse_duration

    try:
        lasts = parse_duration(text)
    except PydanticCustomError:
        raise ExpiryError(text) from None
    if not lasts:
        raise ExpiryError(text)
    return lasts


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["token_id"],
        "name": row["name"],
        "role": row["role"],
        "starts with": row["token_start"],
        "scopes": row["scopes"],
        "expires": row["expires_at"],
        "last used": row["last_used_at"],
        "revoked": row["revoked_at"],
    }
