"""Take many rows at once, by rules that do not ask which writer came first."""

from floe.catalog.stores.merging.rules import (
    Answer,
    Assign,
    Fetched,
    Lookup,
    Merge,
    Merging,
    Row,
    Through,
    Unless,
    Written,
    earliest,
    latest,
    preferred,
)
from floe.errors import FloeError

__all__ = [
    "Answer",
    "Assign",
    "Fetched",
    "Lookup",
    "Merge",
    "Merging",
    "Row",
    "Through",
    "Unless",
    "Written",
    "earliest",
    "latest",
    "merging_for",
    "preferred",
]


class NoMergingError(FloeError):
    """Events cannot be taken by this store."""

    def __init__(self, store: str) -> None:
        super().__init__(
            f"The event door writes to SQLite and PostgreSQL, and this catalog is on {store}."
        )


def merging_for(store: str) -> Merging:
    """Return how a store takes rows."""
    if store == "sqlite":
        from floe.catalog.stores.merging.sqlite import SqliteMerging

        return SqliteMerging()
    if store == "postgresql":
        from floe.catalog.stores.merging.postgresql import PostgresqlMerging

        return PostgresqlMerging()
    raise NoMergingError(store)
