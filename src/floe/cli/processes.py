"""`floe processes`: list the processes of the catalog."""

from typing import Annotated

import typer

from floe.cli.context import JsonOption, ProjectOption, open_project_catalog
from floe.cli.output import console, print_json, table


def processes(
    after: Annotated[str, typer.Option(help="Next page: list processes after this key.")] = "",
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="Number of processes to show.")
    ] = 100,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """List processes with technology, trigger and owning team."""
    from floe.catalog import list_processes

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        listed = list_processes(session, after=after, limit=limit + 1)
        rows = [
            {
                "key": process.process_key,
                "technology": process.technology,
                "trigger": process.trigger_mode,
                "team": process.team,
                "status": process.status,
            }
            for process in listed[:limit]
        ]
    more = rows[-1]["key"] if len(listed) > limit else None
    if as_json:
        print_json({"processes": rows, "next": more})
        return
    if not rows:
        console.print("No process is registered yet. Register a project with: floe register")
        return
    console.print(table("processes", _shorten_keys(rows)))
    if more:
        console.print(f"There are more. Next page: floe processes --after '{more}'", markup=False)


def _shorten_keys(rows: list[dict[str, str | None]]) -> list[dict[str, str | None]]:
    """Show the name instead of the long key, and the namespace if there are several."""
    from floe.spec.identity import process_of_key

    processes = [process_of_key(str(row["key"])) for row in rows]
    several = len({process.namespace for process in processes}) > 1
    shown = []
    for process, row in zip(processes, rows, strict=True):
        line: dict[str, str | None] = {"name": process.name}
        if several:
            line["from"] = process.namespace
        shown.append({**line, **{name: row[name] for name in row if name != "key"}})
    return shown
