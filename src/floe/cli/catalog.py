"""`floe catalog`: upgrade, check and inspect the catalog's database."""

from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.context import JsonOption, ProjectOption, catalog_url, open_project_catalog
from floe.cli.output import console, print_json, table

if TYPE_CHECKING:
    from floe.catalog.database import Catalog

app = typer.Typer(help="Upgrade, check and inspect the catalog's database.", no_args_is_help=True)

DialectOption = Annotated[str, typer.Option(help="sqlite, postgresql or db2.")]


@contextmanager
def _open_any_revision(project: Path | None) -> Iterator["Catalog"]:
    """Open the catalog at any revision, for the commands that upgrade or check it."""
    from floe.catalog.database import open_catalog

    catalog = open_catalog(catalog_url(project))
    try:
        yield catalog
    finally:
        catalog.close()


@app.command()
def upgrade(project: ProjectOption = None) -> None:
    """Upgrade the catalog's tables to the revision that this version of floe needs."""
    from floe.catalog.migrate import catalog_revision, upgrade_catalog

    with _open_any_revision(project) as catalog:
        before = catalog_revision(catalog)
        upgrade_catalog(catalog)
        after = catalog_revision(catalog)
    if before == after:
        console.print(f"The catalog is already at revision {after}.")
    else:
        console.print(f"Upgraded the catalog from revision {before or 'none'} to {after}.")


@app.command()
def check(project: ProjectOption = None) -> None:
    """Check that the catalog's tables fit this version of floe; exit 1 if not."""
    from floe.catalog.migrate import catalog_revision, check_catalog

    with _open_any_revision(project) as catalog:
        check_catalog(catalog)
        console.print(f"The catalog is up to date: revision {catalog_revision(catalog)}.")


@app.command()
def ddl(dialect: DialectOption = "postgresql") -> None:
    """Print the SQL that creates an empty catalog, for a DBA to run."""
    from floe.catalog.migrate import ddl as write_ddl

    typer.echo(write_ddl(dialect))


@app.command()
def stats(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Count the catalog's datasets, processes, runs and other rows."""
    from floe.catalog.database import count_rows

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        counts = count_rows(session)
    if as_json:
        print_json(counts)
    else:
        console.print(table("catalog", [{"what": n, "count": c} for n, c in counts.items()]))


@app.command()
def split(
    name: Annotated[str, typer.Argument(help="Full name of the joined dataset, now an alias.")],
    reason: Annotated[str | None, typer.Option(help="Why, for the audit log.")] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Undo a join of two datasets.

    Both datasets get back their own versions, states, edges and aliases. What
    was recorded after the join stays with the remaining dataset. The same
    symlink does not join the two again.
    """
    from floe.catalog.joins.splitting import split_dataset

    with open_project_catalog(project) as catalog, catalog.writing() as session:
        restored, kept = split_dataset(session, name, actor=getuser(), reason=reason)
        names = {"dataset": restored.full_name, "split_from": kept.full_name}
    if as_json:
        print_json(names)
    else:
        console.print("Split {dataset} from {split_from}.".format(**names), markup=False)
