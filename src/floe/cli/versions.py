"""`floe versions DATASET`: what became of each version, the newest first."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import open_project_catalog
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

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
        rows = [
            {**_plain(version), "reason": reasons.get(version.version_tag)} for version in shown
        ]
        print_json({"dataset": name, "versions": rows, "more": more})
    elif not shown:
        console.print(f"{name} has no version yet.", markup=False)
    else:
        console.print(table(name, _rows(shown)))
        for tag, reason in reasons.items():
            console.print(f"{tag} was rejected: {reason}", style="yellow", markup=False)
        if more:
            console.print("There are more: use a larger --limit.", style="dim")


def _reasons(session: "Session", dataset_id: int, shown: "Sequence[VersionRow]") -> dict[str, str]:
    """Say of the rejected ones why they were."""
    from floe.catalog.retention import describe_state
    from floe.catalog.versions import REJECTED, get_version_of

    tags = [version.version_tag for version in shown if version.state == REJECTED]
    events = {
        tag: describe_state(session, get_version_of(session, dataset_id, tag)) for tag in tags
    }
    return {tag: event.reason for tag, event in events.items() if event and event.reason}


def _plain(version: "VersionRow") -> dict[str, Any]:
    return {
        "tag": version.version_tag,
        "business_date": version.business_date,
        "partition": version.partition_key,
        "state": version.state,
        "rows": version.row_count,
        "bytes": version.size_bytes,
        "run": version.produced_by_run_id,
        "made_at": version.produced_at,
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
