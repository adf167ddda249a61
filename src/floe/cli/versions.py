"""`floe versions DATASET`: list a dataset's versions, newest first."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption, open_project_catalog
from floe.cli.output import console, print_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from floe.catalog.version_queries import StateEvent, VersionRow

RUN_SHOWN = 8
"""Characters of a run id that are shown."""


def versions(
    dataset: Annotated[str, typer.Argument(help="Name, full name, alias or id.")],
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="Number of versions, newest first.")
    ] = 20,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """List a dataset's versions with date, state, size and run."""
    from floe.catalog import find_dataset
    from floe.catalog.version_queries import page_versions

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        row = find_dataset(session, dataset)
        # Fetch one more than shown, to see whether there are more.
        page = page_versions(session, row.dataset_id, limit + 1)
        shown, more = page[:limit], len(page) > limit
        reasons = _reasons(session, row.dataset_id, shown)
        name = row.name
    if as_json:
        rows = [_plain(version, reasons.get(version.version_tag)) for version in shown]
        print_json({"dataset": name, "versions": rows, "more": more})
    elif not shown:
        console.print(f"{name} has no version yet.", markup=False)
    else:
        console.print(table(name, _rows(shown)))
        for version in shown:
            event = reasons.get(version.version_tag)
            if event is not None:
                message = describe_event(version.version_tag, version.state, event)
                console.print(message, style="yellow", markup=False)
        if more:
            console.print("There are more. Use a larger --limit.", style="dim")


def describe_event(tag: str, state: str, event: "StateEvent") -> str:
    """Describe who rejected or retracted a version, and why."""
    by = f" by {event.actor}" if event.actor else ""
    return f"{tag} was {state.lower()}{by}: {event.reason or 'no reason given'}"


def _reasons(
    session: "Session", dataset_id: int, shown: "Sequence[VersionRow]"
) -> "dict[str, StateEvent]":
    """Return why versions were rejected or retracted, by tag."""
    from floe.catalog.version_queries import describe_states

    named = ((version.dataset_version_id, version.state) for version in shown)
    events = describe_states(session, named, dataset_id)
    return {
        version.version_tag: events[version.dataset_version_id]
        for version in shown
        if version.dataset_version_id in events
    }


def _plain(version: "VersionRow", event: "StateEvent | None") -> dict[str, Any]:
    return {
        "tag": version.version_tag,
        "business_date": version.business_date,
        "partition": version.partition_key,
        "state": version.state,
        "rows": version.row_count,
        "bytes": version.size_bytes,
        "run": version.produced_by_run_id,
        "made_at": version.produced_at,
        "reason": event and event.reason,
        "actor": event and event.actor,
    }


def _rows(shown: "Sequence[VersionRow]") -> list[dict[str, Any]]:
    """Return the table's rows; without the date if every tag starts with it."""
    dated = any(version.partition_key for version in shown)
    return [_row(version, dated=dated) for version in shown]


def _row(version: "VersionRow", *, dated: bool) -> dict[str, Any]:
    run = version.produced_by_run_id
    return {
        "tag": version.version_tag,
        **({"date": version.business_date} if dated else {}),
        "state": version.state,
        "rows": version.row_count,
        "bytes": version.size_bytes,
        "run": run and run[:RUN_SHOWN],
        "written": f"{version.produced_at:%Y-%m-%d %H:%M}Z",
    }
