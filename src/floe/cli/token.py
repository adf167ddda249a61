"""`floe token`: create, list and revoke API tokens."""

import getpass
from datetime import timedelta
from typing import Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption, find_home, open_catalog_at
from floe.cli.output import console, print_json, table
from floe.errors import FloeError

app = typer.Typer(
    help="Create, list and revoke API tokens of people and jobs.",
    no_args_is_help=True,
)

ROLES_HELP = "PLATFORM_ADMIN, DATA_STEWARD, DATA_OWNER, DATA_CONSUMER or INGEST."


class ExpiryError(FloeError):
    """The lifetime of a token is invalid, or zero."""

    exit_code = 2

    def __init__(self, text: str) -> None:
        super().__init__(
            f"Invalid lifetime '{text}'. Write it as 30s, 12h, 90d or 52w; up to 1000 years."
        )


@app.command()
def create(
    *,
    name: Annotated[str, typer.Option(help="Person or program that uses it.")],
    role: Annotated[str, typer.Option(help=ROLES_HELP)],
    expires: Annotated[
        str | None, typer.Option(help="Lifetime, such as 12h or 90d (default: forever).")
    ] = None,
    team: Annotated[
        str | None, typer.Option(help="Team: a DATA_OWNER may change what this team owns.")
    ] = None,
    email: Annotated[
        str | None, typer.Option(help="Email address, which may own datasets as well.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="Limit to read or ingest (default: by role)."),
    ] = None,
    project: ProjectOption = None,
) -> None:
    """Create a token and print it. It is shown only once: floe keeps only its hash."""
    from floe.catalog.principals import create_token

    lasts = None if expires is None else _lifetime(expires)
    with open_catalog_at(find_home(project).url) as catalog, catalog.writing() as session:
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
    """List tokens with owner, role and expiry."""
    from floe.catalog.principals import list_tokens

    with open_catalog_at(find_home(project).url) as catalog, catalog.reading() as session:
        rows = [dict(row._mapping) for row in list_tokens(session)]
    if as_json:
        print_json(rows)
    elif rows:
        console.print(table("tokens", [_token_row(row) for row in rows]))
    else:
        console.print(
            "There is no token yet. Create one with: floe token create --name NAME --role ROLE"
        )


@app.command()
def revoke(
    token_id: Annotated[int, typer.Argument(help="Id of the token, from floe token list.")],
    project: ProjectOption = None,
) -> None:
    """Revoke a token. Running API servers apply it within seconds."""
    from floe.catalog.principals import revoke_token

    with open_catalog_at(find_home(project).url) as catalog, catalog.writing() as session:
        changed = revoke_token(session, token_id, actor=getpass.getuser())
    state = "is revoked" if changed else "was already revoked"
    console.print(f"Token {token_id} {state}.")


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


def _token_row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["token_id"],
        "name": row["name"],
        "role": row["role"] if row["scopes"] == "all" else f"{row['role']} ({row['scopes']})",
        "starts with": row["token_start"],
        "last used": row["last_used_at"],
        "valid until": "revoked" if row["revoked_at"] else row["expires_at"] or "forever",
    }
