"""`floe versions DATASET`: what became of each version, the newest first."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import open_project_catalog
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from floe.catalog.retention import StateEvent
    from floe.catalog.versions import VersionRow

RUN_SHOWN = 8
"""As many characters of a run's id as tell runs of one dataset apart."""


def versions(
    dataset: Annotated[str, typer.Argument(help="Name, full name, alias or number.")],
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, the newest first.")] = 20,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a dataset's versions: their dates, states, sizes, and the runs that made them."""
    from floe.catalog import find_dataset
    from floe.catalog.versions import page_versions

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        row = find_dataset(session, dataset)
        # One more than is shown tells whether there are more.
        found = page_versions(session, row.dataset_id, limit + 1)
        shown, more = found[:limit], len(found) > limit
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
                said = describe_event(version.version_tag, version.state, event)
                console.print(said, style="yellow", markup=False)
        if more:
            console.print("There are more: use a larger --limit.", style="dim")


def describe_event(tag: str, state: str, event: "StateEvent") -> str:
    """Say who rejected or retracted a version, and why."""
    by = f" by {event.actor}" if event.actor else ""
    return f"{tag} was {state.lower()}{by}: {event.reason or 'no reason was given'}"


def _reasons(
    session: "Session", dataset_id: int, shown: "Sequence[VersionRow]"
) -> "dict[str, StateEvent]":
    """Return why versions were rejected or retracted, by tag."""
    from floe.catalog.retention import describe_states

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
    """What fits a screen: a date is left out where every tag begins with it."""
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
        "made at": f"{version.produced_at:%Y-%m-%d %H:%M}Z",
    }
