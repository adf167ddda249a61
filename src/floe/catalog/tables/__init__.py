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
    AccessToken,
    AuditLog,
    DatasetJoin,
    DatasetRegistration,
    DriftClaim,
    Lease,
    LoginSession,
    Principal,
    RoleGrant,
)
from floe.catalog.tables.lineage import (
    ColumnEdge,
    ColumnSighting,
    LineageEdge,
    ObservedFacet,
    SchemaSighting,
)
from floe.catalog.tables.processes import Process, ProcessRun, RunInput, RunStep
from floe.catalog.tables.quality import QualityCheckDef, QualityCheckResult, Sla

__all__ = [
    "AccessToken",
    "AuditLog",
    "Change",
    "ChangeCursor",
    "ChangeHead",
    "ColumnEdge",
    "ColumnSighting",
    "Dataset",
    "DatasetAlias",
    "DatasetEvent",
    "DatasetJoin",
    "DatasetRegistration",
    "DatasetSchema",
    "DatasetTag",
    "DatasetVersion",
    "DriftClaim",
    "ImportState",
    "Lease",
    "LineageEdge",
    "LoginSession",
    "ObservedFacet",
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
    "SchemaSighting",
    "Sla",
    "Table",
]
