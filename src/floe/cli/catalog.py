"""`floe catalog`: look after the catalog's database."""

from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.context import catalog_url, open_project_catalog
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json, table

if TYPE_CHECKING:
    from floe.catalog.database import Catalog

app = typer.Typer(help="Look after the catalog's database.", no_args_is_help=True)

DialectOption = Annotated[str, typer.Option(help="sqlite, postgresql or db2.")]


@contextmanager
def _open_as_it_is(project: Path | None) -> Iterator["Catalog"]:
    """Open the catalog whatever its revision: to upgrade and check it is what we are here for."""
    from floe.catalog.database import open_catalog

    catalog = open_catalog(catalog_url(project))
    try:
        yield catalog
    finally:
        catalog.close()


@app.command()
def upgrade(project: ProjectOption = None) -> None:
    """Bring the catalog's tables to what this version of floe needs."""
    from floe.catalog.migrate import catalog_revision, upgrade_catalog

    with _open_as_it_is(project) as catalog:
        before = catalog_revision(catalog)
        upgrade_catalog(catalog)
        after = catalog_revision(catalog)
    if before == after:
        console.print(f"The catalog is at revision {after} already.")
    else:
        console.print(f"The catalog went from revision {before or 'none'} to {after}.")


@app.command()
def check(project: ProjectOption = None) -> None:
    """Say whether the catalog's tables are what this version of floe needs (exit 0 or 1)."""
    from floe.catalog.migrate import catalog_revision, check_catalog

    with _open_as_it_is(project) as catalog:
        check_catalog(catalog)
        console.print(f"The catalog is at revision {catalog_revision(catalog)}, as it should be.")


@app.command()
def ddl(dialect: DialectOption = "postgresql") -> None:
    """Print the SQL that makes an empty catalog, for databases that only a DBA may change."""
    from floe.catalog.migrate import ddl as write_ddl

    typer.echo(write_ddl(dialect))


@app.command()
def stats(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Count what the catalog holds."""
    from floe.catalog.stats import count_nouns

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        counts = count_nouns(session)
    if as_json:
        print_json(counts)
    else:
        console.print(table("catalog", [{"what": n, "count": c} for n, c in counts.items()]))


@app.command()
def split(
    name: Annotated[str, typer.Argument(help="Full name that became an alias by a join.")],
    reason: Annotated[str | None, typer.Option(help="Why, for the audit log.")] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Undo a join: make the dataset again that was joined to another.

    Both have their own versions, states, edges and aliases again. What came after the join stays
    with the dataset that stayed, and the same symlink does not join the two again.
    """
    from floe.catalog.splitting import split_dataset

    with open_project_catalog(project) as catalog, catalog.writing() as session:
        restored, kept = split_dataset(session, name, actor=getuser(), reason=reason)
        names = {"dataset": restored.full_name, "split_from": kept.full_name}
    if as_json:
        print_json(names)
    else:
        console.print("{dataset} is split from {split_from}.".format(**names), markup=False)
