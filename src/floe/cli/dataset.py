"""`floe dataset NAME`: everything the catalog knows about one dataset."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption, open_project_catalog
from floe.cli.output import console, print_facts, print_json, table

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from floe.catalog.runs import RunRow
    from floe.catalog.version_queries import StateEvent

SHOWN_VERSIONS = 10


def dataset(
    name: Annotated[str, typer.Argument(help="Name, full name, alias or id.")],
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a dataset: owner, SLA, columns, checks, writers, readers and versions."""
    with open_project_catalog(project) as catalog, catalog.reading() as session:
        facts = describe_dataset(session, name)
    if as_json:
        print_json(facts)
        return
    _show(facts)


def describe_dataset(session: "Session", name: str) -> dict[str, Any]:
    """Return what the catalog knows about a dataset, as JSON values."""
    from floe import catalog
    from floe.catalog.runs import find_last_success
    from floe.catalog.version_queries import describe_states

    row = catalog.find_dataset(session, name)
    producers = catalog.list_producers(session, row.dataset_id)
    consumers = catalog.list_consumers(session, row.dataset_id)
    versions = catalog.list_versions(session, row.dataset_id, limit=SHOWN_VERSIONS)
    states = [(version.dataset_version_id, version.state) for version in versions]
    events = describe_states(session, states, row.dataset_id)
    return {
        "dataset_id": row.dataset_id,
        "name": row.name,
        "full_name": row.full_name,
        "status": row.status,
        "description": row.description,
        "category": row.category,
        "format": row.default_format,
        "owner_team": row.owner_team,
        "owner_email": row.owner_email,
        "tags": catalog.list_tags(session, row.dataset_id),
        "sla": catalog.describe_sla(session, row.default_sla_id),
        "columns": [
            {"name": column.name, "type": column.type, "nullable": column.nullable}
            for column in catalog.list_columns(session, row.schema_hash)
        ],
        "checks": [
            {"name": check.name, "kind": check.kind, "severity": check.severity}
            for check in catalog.list_checks(session, row.dataset_id)
        ],
        "written_by": [process.process_key for process in producers],
        "read_by": [process.process_key for process in consumers],
        "last_successful_run": find_last_success(session, row.dataset_id),
        "versions": [
            {
                "tag": version.version_tag,
                "state": version.state,
                "rows": version.row_count,
                "produced_at": version.produced_at,
                **_event(events.get(version.dataset_version_id)),
            }
            for version in versions
        ],
    }


def _describe_success(run: "RunRow | None") -> str | None:
    from floe.catalog.runs import short_run_id

    if run is None:
        return None
    ended = f", ended {run.end_ts:%Y-%m-%d %H:%M}Z" if run.end_ts else ""
    return f"run {short_run_id(run.run_uuid)} of {run.process_key}{ended}"


def _event(event: "StateEvent | None") -> dict[str, str | None]:
    return {
        "reason": None if event is None else event.reason,
        "actor": None if event is None else event.actor,
    }


def _show(facts: dict[str, Any]) -> None:
    owner = " · ".join(filter(None, (facts["owner_team"], facts["owner_email"])))
    print_facts(
        facts["full_name"],
        {
            "status": facts["status"],
            "description": facts["description"],
            "owner": owner,
            "category": facts["category"],
            "format": facts["format"],
            "tags": ", ".join(facts["tags"]),
            "sla": facts["sla"],
            "written by": "\n".join(facts["written_by"]),
            "last success": _describe_success(facts["last_successful_run"]),
            "read by": "\n".join(facts["read_by"]),
        },
    )
    for title, rows in (
        ("columns", facts["columns"]),
        ("checks", facts["checks"]),
        ("versions", [_version_row(version) for version in facts["versions"]]),
    ):
        if rows:
            console.print(table(title, rows))
    for version in facts["versions"]:
        if version["reason"]:
            by = f" by {version['actor']}" if version["actor"] else ""
            message = f"{version['tag']} was {version['state'].lower()}{by}: {version['reason']}"
            console.print(message, style="yellow", markup=False)


def _version_row(version: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in version.items() if name not in ("reason", "actor")}
