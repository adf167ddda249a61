"""Small graphs for tests: datasets and processes with nothing but a name."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from floe.catalog.tables import Dataset, Process

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)


def dataset(session: Session, name: str, **values: Any) -> int:
    """Add a dataset and return its number."""
    row = Dataset(
        **{
            "namespace": "lake",
            "name": name,
            "full_name": f"lake/{name}",
            "status": "ACTIVE",
            "needs_validation": False,
            "created_at": NOON,
            **values,
        }
    )
    session.add(row)
    session.flush()
    return row.dataset_id


def process(session: Session, key: str, **values: Any) -> int:
    """Add a process and return its number."""
    row = Process(
        **{
            "process_key": key,
            "name": key.rsplit("/", 1)[-1],
            "trigger_mode": "PROCESS",
            "status": "ACTIVE",
            "created_at": NOON,
            **values,
        }
    )
    session.add(row)
    session.flush()
    return row.process_id
