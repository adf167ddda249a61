"""`floe process KEY`: all that the catalog knows of one process."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import open_project_catalog
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_facts, print_json, table
from floe.cli.runs import print_reasons

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

SHOWN_RUNS = 10


def process(
    key: Annotated[str, typer.Argument(help="Key, name or number.")],
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a process: owner, trigger, what it reads and writes, its last runs."""
    with open_project_catalog(project) as catalog, catalog.reading() as session:
        found = describe_process(session, key)
    if as_json:
        print_json(found)
        return
    _show(found)


def describe_process(session: "Session", key: str) -> dict[str, Any]:
    """Gather what is known of a process, as plain values."""
    from floe import catalog
    from floe.catalog.runs import reason_of_run

    row = catalog.find_process(session, key)
    newest = catalog.list_runs(session, process_id=row.process_id, limit=SHOWN_RUNS)
    contract = catalog.get_contract(session, row.process_id)
    return {
        "process_id": row.process_id,
        "key": row.process_key,
        "name": row.name,
        "status": row.status,
        "description": row.description,
        "technology": row.technology,
        "trigger": row.trigger_mode,
        "team": row.team,
        "owner_email": row.owner_email,
        "sla": catalog.describe_sla(session, row.sla_id),
        "inputs": list(contract.inputs),
        "outputs": list(contract.outputs),
        "runs": [
            {
                "run": one.run_uuid,
                "date": one.business_date,
                "status": one.status,
                "started": one.start_ts,
                "ended": one.end_ts,
                "reason": reason_of_run(one.status, one.facets_json, one.parent_run_uuid),
            }
            for one in newest
        ],
    }


def _show(found: dict[str, Any]) -> None:
    owner = " · ".join(filter(None, (found["team"], found["owner_email"])))
    print_facts(
        found["key"],
        {
            "status": found["status"],
            "description": found["description"],
            "owner": owner,
            "technology": found["technology"],
            "trigger": found["trigger"],
            "sla": found["sla"],
            "reads": "\n".join(found["inputs"]),
            "writes": "\n".join(found["outputs"]),
        },
    )
    if found["runs"]:
        console.print(table("runs", [_run(one) for one in found["runs"]]))
        print_reasons(
            [(one["run"], one["status"], one["reason"]) for one in found["runs"] if one["reason"]]
        )


def _run(one: dict[str, Any]) -> dict[str, Any]:
    from floe.catalog.run_ids import short_run_id

    took = None
    if one["started"] is not None and one["ended"] is not None:
        took = f"{(one['ended'] - one['started']).total_seconds():.1f} s"
    started = one["started"]
    return {
        "run": short_run_id(one["run"]),
        "date": one["date"],
        "status": one["status"],
        "started": started and f"{started:%Y-%m-%d %H:%M}Z",
        "took": took,
    }
