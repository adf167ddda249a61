"""`floe process KEY`: everything the catalog knows about one process."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption, open_project_catalog
from floe.cli.output import console, print_facts, print_json, table
from floe.cli.runs import print_reasons

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

SHOWN_RUNS = 10


def process(
    key: Annotated[str, typer.Argument(help="Key, name or id.")],
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a process: owner, trigger, inputs, outputs and last runs."""
    with open_project_catalog(project) as catalog, catalog.reading() as session:
        facts = describe_process(session, key)
    if as_json:
        print_json(facts)
        return
    _show(facts)


def describe_process(session: "Session", key: str) -> dict[str, Any]:
    """Return what the catalog knows about a process, as JSON values."""
    from floe import catalog
    from floe.catalog.processes import find_sql
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
        "sql": find_sql(session, row.process_id),
        "runs": [
            {
                "run": run.run_uuid,
                "date": run.business_date,
                "status": run.status,
                "started": run.start_ts,
                "ended": run.end_ts,
                "reason": reason_of_run(run.status, run.facets_json, run.parent_run_uuid),
            }
            for run in newest
        ],
    }


def _show(facts: dict[str, Any]) -> None:
    owner = " · ".join(filter(None, (facts["team"], facts["owner_email"])))
    print_facts(
        facts["key"],
        {
            "status": facts["status"],
            "description": facts["description"],
            "owner": owner,
            "technology": facts["technology"],
            "trigger": facts["trigger"],
            "sla": facts["sla"],
            "reads": "\n".join(facts["inputs"]),
            "writes": "\n".join(facts["outputs"]),
        },
    )
    if facts["sql"]:
        console.print("sql", style="bold")
        console.print(facts["sql"].rstrip(), markup=False, soft_wrap=True)
    if facts["runs"]:
        console.print(table("runs", [_run_row(run) for run in facts["runs"]]))
        print_reasons(
            [(run["run"], run["status"], run["reason"]) for run in facts["runs"] if run["reason"]]
        )


def _run_row(run: dict[str, Any]) -> dict[str, Any]:
    from floe.catalog.runs import short_run_id

    took = None
    if run["started"] is not None and run["ended"] is not None:
        took = f"{(run['ended'] - run['started']).total_seconds():.1f} s"
    started = run["started"]
    return {
        "run": short_run_id(run["run"]),
        "date": run["date"],
        "status": run["status"],
        "started": started and f"{started:%Y-%m-%d %H:%M}Z",
        "took": took,
    }
