"""`floe datasets [TEXT]`: find datasets by words, or list them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import open_project_catalog
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json, table

if TYPE_CHECKING:
    from floe.catalog.search import DatasetHit, SearchPage


def datasets(
    text: Annotated[
        str, typer.Argument(help="Words of a name, description, owner, tag or column.")
    ] = "",
    *,
    category: Annotated[str | None, typer.Option(help="Only of this category.")] = None,
    team: Annotated[str | None, typer.Option(help="Only what this team owns.")] = None,
    data_format: Annotated[str | None, typer.Option("--format", help="Only this format.")] = None,
    status: Annotated[str | None, typer.Option(help="DRAFT, ACTIVE or DEPRECATED.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only with this tag.")] = None,
    declared_by: Annotated[
        str | None, typer.Option(help="Only what this project declares.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many to show.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on from here.")] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find datasets by words, the best first; without words list them by name."""
    from floe.catalog.search import SearchFilters, search_datasets

    filters = SearchFilters(category, team, data_format, status, tag, declared_by)
    with open_project_catalog(project) as catalog, catalog.reading() as session:
        page = search_datasets(
            session, text, filters=filters, limit=limit, cursor=cursor, with_facets=as_json
        )
    if as_json:
        print_json(asdict(page))
    elif page.hits:
        console.print(table("datasets", _rows(page.hits)))
        _say_more(page)
    else:
        _say_nothing_found(text, page, filtered=filters != SearchFilters())


def _rows(hits: Sequence["DatasetHit"]) -> list[dict[str, Any]]:
    # The short name where it says enough.
    times = Counter(hit.name for hit in hits)
    return [
        {
            "name": hit.name if times[hit.name] == 1 else hit.full_name,
            "category": hit.category,
            "format": hit.format,
            "team": hit.team,
            "status": hit.status,
        }
        for hit in hits
    ]


def _say_more(page: "SearchPage") -> None:
    if page.next_cursor:
        console.print(f"There are more: the same with --cursor {page.next_cursor}", markup=False)


def _say_nothing_found(text: str, page: "SearchPage", *, filtered: bool) -> None:
    if page.suggestions:
        names = ", ".join(page.suggestions)
        said = f"No dataset matches '{text}'. Did you mean: {names}?"
    elif text or filtered:
        said = "No dataset matches. Use fewer words or filters; floe datasets lists all."
    else:
        said = "No dataset is registered yet. Register a project with: floe register"
    console.print(said, markup=False)
