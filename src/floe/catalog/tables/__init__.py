"""The catalog's tables, as docs/reference/catalog.md describes them."""

from floe.catalog.tables.base import Table
from floe.catalog.tables.datasets import (
    Dataset,
    DatasetAlias,
    DatasetEvent,
    DatasetSchema,
    DatasetTag,
    DatasetVersion,
    Project,
)
from floe.catalog.tables.events import Change, ChangeCursor, ChangeHead, ImportState, RunEvent
from floe.catalog.tables.governance import (
    AuditLog,
    DatasetRegistration,
    Lease,
    Principal,
    RoleGrant,
)
from floe.catalog.tables.lineage import ColumnEdge, LineageEdge
from floe.catalog.tables.processes import Process, ProcessRun, RunInput, RunStep
from floe.catalog.tables.quality import QualityCheckDef, QualityCheckResult, Sla

__all__ = [
    "AuditLog",
    "Change",
    "ChangeCursor",
    "ChangeHead",
    "ColumnEdge",
    "Dataset",
    "DatasetAlias",
    "DatasetEvent",
    "DatasetRegistration",
    "DatasetSchema",
    "DatasetTag",
    "DatasetVersion",
    "ImportState",
    "Lease",
    "LineageEdge",
    "Principal",
    "Process",
    "ProcessRun",
    "Project",
    "QualityCheckDef",
    "QualityCheckResult",
    "RoleGrant",
    "RunEvent",
    "RunInput",
    "RunStep",
    "Sla",
    "Table",
]
