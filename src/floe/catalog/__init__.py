"""What exists: datasets, versions, processes, runs, edges. The only place that speaks to its
database.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from floe.catalog.changes import (
    NewChange,
    last_position,
    list_changes,
    move_cursor,
    read_cursor,
    record_change,
)
from floe.catalog.checks import list_checks, list_results, put_check, record_result
from floe.catalog.database import Catalog, open_catalog
from floe.catalog.datasets import (
    add_alias,
    create_dataset,
    find_dataset,
    list_dataset_events,
    list_datasets,
    list_tags,
    rename_dataset,
    replace_tags,
    set_status,
    update_dataset,
)
from floe.catalog.edges import list_consumers, list_producers, observe_edges
from floe.catalog.errors import DatasetNotFoundError, NotFoundError, ProcessNotFoundError
from floe.catalog.migrate import check_catalog, open_ready_catalog, upgrade_catalog
from floe.catalog.processes import (
    find_process,
    get_contract,
    list_processes,
    register_process,
)
from floe.catalog.runs import finish_run, get_run, last_successful_run, list_runs, start_run
from floe.catalog.schemas import Column, diff_schemas, list_columns, store_schemas
from floe.catalog.slas import describe_sla, list_stale_datasets, put_sla
from floe.catalog.versions import (
    advance_version,
    get_version,
    latest_ready,
    list_versions,
    reserve_version,
)

if TYPE_CHECKING:
    from floe.catalog.location import catalog_url
    from floe.catalog.projects import Report, register_project

__all__ = [
    "Catalog",
    "Column",
    "DatasetNotFoundError",
    "NewChange",
    "NotFoundError",
    "ProcessNotFoundError",
    "Report",
    "add_alias",
    "advance_version",
    "catalog_url",
    "check_catalog",
    "create_dataset",
    "describe_sla",
    "diff_schemas",
    "find_dataset",
    "find_process",
    "finish_run",
    "get_contract",
    "get_run",
    "get_version",
    "last_position",
    "last_successful_run",
    "latest_ready",
    "list_changes",
    "list_checks",
    "list_columns",
    "list_consumers",
    "list_dataset_events",
    "list_datasets",
    "list_processes",
    "list_producers",
    "list_results",
    "list_runs",
    "list_stale_datasets",
    "list_tags",
    "list_versions",
    "move_cursor",
    "observe_edges",
    "open_catalog",
    "open_ready_catalog",
    "put_check",
    "put_sla",
    "read_cursor",
    "record_change",
    "record_result",
    "register_process",
    "register_project",
    "rename_dataset",
    "replace_tags",
    "reserve_version",
    "set_status",
    "start_run",
    "store_schemas",
    "update_dataset",
    "upgrade_catalog",
]

# What needs the language's models, at its home: fetched when first asked for, because whoever
# serves a catalog or reads it declares nothing.
_HOMES = {
    "Report": "projects",
    "catalog_url": "location",
    "register_project": "projects",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
