"""`floe processes`: the processes that the catalog knows."""

from typing import Annotated

import typer

from floe.cli.context import open_project_catalog
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json, table


def processes(
    after: Annotated[str, typer.Option(help="Go on after this key.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many to show.")] = 100,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """List processes: what they are built with, how they start, whose they are."""
    from floe.catalog import list_processes

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        found = list_processes(session, after=after, limit=limit + 1)
        rows = [
            {
                "key": one.process_key,
                "technology": one.technology,
                "trigger": one.trigger_mode,
                "team": one.team,
                "status": one.status,
            }
            for one in found[:limit]
        ]
    more = rows[-1]["key"] if len(found) > limit else None
    if as_json:
        print_json({"processes": rows, "next": more})
        return
    if not rows:
        console.print("No process is registered yet. Register a project with: floe register")
        return
    console.print(table("processes", _for_the_screen(rows)))
    if more:
        console.print(f"There are more: floe processes --after '{more}'", markup=False)


def _for_the_screen(rows: list[dict[str, str | None]]) -> list[dict[str, str | None]]:
    """Keys are long: their last part tells processes apart, the first part where there are many."""
    from floe.spec.identity import process_of_key

    found = [process_of_key(str(row["key"])) for row in rows]
    several = len({process.namespace for process in found}) > 1
    shown = []
    for process, row in zip(found, rows, strict=True):
        line: dict[str, str | None] = {"name": process.name}
        if several:
            line["from"] = process.namespace
        shown.append({**line, **{name: row[name] for name in row if name != "key"}})
    return shown
