"""How much the catalog holds."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from floe.catalog.tables import (
    Change,
    ColumnEdge,
    Dataset,
    DatasetRegistration,
    DatasetSchema,
    DatasetVersion,
    LineageEdge,
    Process,
    ProcessRun,
    Project,
    QualityCheckDef,
    QualityCheckResult,
    RunEvent,
    Sla,
    Table,
)

NOUNS: dict[str, type[Table]] = {
    "projects": Project,
    "datasets": Dataset,
    "versions": DatasetVersion,
    "processes": Process,
    "runs": ProcessRun,
    "edges": LineageEdge,
    "column_edges": ColumnEdge,
    "slas": Sla,
    "checks": QualityCheckDef,
    "check_results": QualityCheckResult,
    "registrations": DatasetRegistration,
    "events": RunEvent,
    "changes": Change,
}


def count_nouns(session: Session) -> dict[str, int]:
    """Return how many there are of each noun."""
    counts = {
        name: select(func.count()).select_from(noun).scalar_subquery()
        for name, noun in NOUNS.items()
    }
    schemas = select(func.count(DatasetSchema.schema_hash.distinct())).scalar_subquery()
    columns = [count.label(name) for name, count in {**counts, "schemas": schemas}.items()]
    return dict(session.execute(select(*columns)).mappings().one())
