"""`floe dataset NAME`: all that the catalog knows of one dataset."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import open_project_catalog
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_facts, print_json, table

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from floe.catalog.retention import StateEvent

SHOWN_VERSIONS = 10


def dataset(
    name: Annotated[str, typer.Argument(help="Name, full name, alias or number.")],
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a dataset: owner, promise, columns, checks, who writes and reads it, its versions."""
    with open_project_catalog(project) as catalog, catalog.reading() as session:
        found = describe_dataset(session, name)
    if as_json:
        print_json(found)
        return
    _show(found)


def describe_dataset(session: "Session", name: str) -> dict[str, Any]:
    """Gather what is known of a dataset, as plain values."""
    from floe import catalog
    from floe.catalog.retention import describe_states

    row = catalog.find_dataset(session, name)
    producers = catalog.list_producers(session, row.dataset_id)
    consumers = catalog.list_consumers(session, row.dataset_id)
    versions = catalog.list_versions(session, row.dataset_id, limit=SHOWN_VERSIONS)
    named = [(one.dataset_version_id, one.state) for one in versions]
    events = describe_states(session, named, row.dataset_id)
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
            {"name": one.name, "type": one.type, "nullable": one.nullable}
            for one in catalog.list_columns(session, row.schema_hash)
        ],
        "checks": [
            {"name": one.name, "kind": one.kind, "severity": one.severity}
            for one in catalog.list_checks(session, row.dataset_id)
        ],
        "written_by": [one.process_key for one in producers],
        "read_by": [one.process_key for one in consumers],
        "versions": [
            {
                "tag": one.version_tag,
                "state": one.state,
                "rows": one.row_count,
                "produced_at": one.produced_at,
                **_event(events.get(one.dataset_version_id)),
            }
            for one in versions
        ],
    }


def _event(event: "StateEvent | None") -> dict[str, str | None]:
    return {
        "reason": None if event is None else event.reason,
        "actor": None if event is None else event.actor,
    }


def _show(found: dict[str, Any]) -> None:
    owner = " · ".join(filter(None, (found["owner_team"], found["owner_email"])))
    print_facts(
        found["full_name"],
        {
            "status": found["status"],
            "description": found["description"],
            "owner": owner,
            "category": found["category"],
            "format": found["format"],
            "tags": ", ".join(found["tags"]),
            "sla": found["sla"],
            "written by": "\n".join(found["written_by"]),
            "read by": "\n".join(found["read_by"]),
        },
    )
    for title, rows in (
        ("columns", found["columns"]),
        ("checks", found["checks"]),
        ("versions", [_version(one) for one in found["versions"]]),
    ):
        if rows:
            console.print(table(title, rows))
    for one in found["versions"]:
        if one["reason"]:
            by = f" by {one['actor']}" if one["actor"] else ""
            said = f"{one['tag']} was {one['state'].lower()}{by}: {one['reason']}"
            console.print(said, style="yellow", markup=False)


def _version(one: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name not in ("reason", "actor")}
