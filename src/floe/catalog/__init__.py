"""The catalog: datasets, versions, processes, runs and lineage, in one database.

Only this package uses that database.
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
from floe.catalog.checks import list_checks, put_check, record_result
from floe.catalog.database import Catalog, catalog_url, open_catalog
from floe.catalog.datasets import (
    add_alias,
    create_dataset,
    find_dataset,
    list_tags,
    rename_dataset,
    replace_tags,
    set_status,
    update_dataset,
)
from floe.catalog.edges import list_consumers, list_producers
from floe.catalog.errors import DatasetNotFoundError, NotFoundError, ProcessNotFoundError
from floe.catalog.migrate import check_catalog, open_ready_catalog, upgrade_catalog
from floe.catalog.processes import (
    find_process,
    get_contract,
    list_processes,
    register_process,
)
from floe.catalog.runs import finish_run, get_run, list_runs
from floe.catalog.schemas import Column, diff_schemas, list_columns, store_schemas
from floe.catalog.slas import describe_sla, list_stale_datasets
from floe.catalog.version_queries import get_version, latest_ready, list_versions
from floe.catalog.versions import advance_version, reserve_version

if TYPE_CHECKING:
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
    "latest_ready",
    "list_changes",
    "list_checks",
    "list_columns",
    "list_consumers",
    "list_processes",
    "list_producers",
    "list_runs",
    "list_stale_datasets",
    "list_tags",
    "list_versions",
    "move_cursor",
    "open_catalog",
    "open_ready_catalog",
    "put_check",
    "read_cursor",
    "record_change",
    "record_result",
    "register_process",
    "register_project",
    "rename_dataset",
    "replace_tags",
    "reserve_version",
    "set_status",
    "store_schemas",
    "update_dataset",
    "upgrade_catalog",
]

# Loaded on first use: they import the spec's models, which readers of a catalog do not need.
_LAZY_MODULES = {
    "Report": "projects",
    "register_project": "projects",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{_LAZY_MODULES[name]}"), name)
    globals()[name] = value
    return value
