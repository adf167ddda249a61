"""`floe datasets [TEXT]`: search datasets, or list them all."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption, open_project_catalog
from floe.cli.output import console, print_json, table

if TYPE_CHECKING:
    from floe.catalog.search import DatasetHit, SearchPage


def datasets(
    text: Annotated[
        str, typer.Argument(help="Words in a name, description, owner, tag or column.")
    ] = "",
    *,
    category: Annotated[str | None, typer.Option(help="Only this category.")] = None,
    team: Annotated[str | None, typer.Option(help="Only datasets of this team.")] = None,
    data_format: Annotated[str | None, typer.Option("--format", help="Only this format.")] = None,
    status: Annotated[str | None, typer.Option(help="Only DRAFT, ACTIVE or DEPRECATED.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only with this tag.")] = None,
    declared_by: Annotated[
        str | None, typer.Option(help="Only datasets that this project declares.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Number of datasets to show.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(help="Next page: the cursor of the last answer.")
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search datasets, best match first. Without TEXT, list all by name."""
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
        _print_next_page(page)
    else:
        _print_no_match(text, page, filtered=filters != SearchFilters())


def _rows(hits: Sequence["DatasetHit"]) -> list[dict[str, Any]]:
    # Show the full name only if the short one is ambiguous.
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


def _print_next_page(page: "SearchPage") -> None:
    if page.next_cursor:
        console.print(f"There are more. Next page: --cursor {page.next_cursor}", markup=False)


def _print_no_match(text: str, page: "SearchPage", *, filtered: bool) -> None:
    if page.suggestions:
        names = ", ".join(page.suggestions)
        message = f"No dataset matches '{text}'. Did you mean: {names}?"
    elif text or filtered:
        message = "No dataset matches. Use fewer words or filters, or list all with: floe datasets"
    else:
        message = "No dataset is registered yet. Register a project with: floe register"
    console.print(message, markup=False)
