"""The databases that the catalog supports, and what differs between them."""

from sqlalchemy.orm import Session

from floe.catalog.stores.merging import Merging
from floe.catalog.stores.store import Fault, SearchDocument, Store
from floe.errors import FloeError

__all__ = [
    "Fault",
    "NoMergingError",
    "SearchDocument",
    "Store",
    "UnknownStoreError",
    "merging_for",
    "store_for",
    "store_of",
]


class UnknownStoreError(FloeError):
    """The catalog's URL names a database that floe does not support."""

    def __init__(self, dialect: str) -> None:
        super().__init__(
            f"Unsupported catalog database '{dialect}'. "
            "Use sqlite:///FILE, postgresql+psycopg://HOST/DATABASE or ibm_db_sa://HOST/DATABASE."
        )


def store_of(session: Session) -> Store:
    """Return the store behind a session of the catalog."""
    store: Store = session.info["store"]
    return store


def store_for(dialect: str) -> Store:
    """Return the store of a SQLAlchemy dialect."""
    if dialect == "sqlite":
        from floe.catalog.stores.sqlite import SqliteStore

        return SqliteStore()
    if dialect == "postgresql":
        from floe.catalog.stores.postgresql import PostgresqlStore

        return PostgresqlStore()
    if dialect in ("ibm_db_sa", "db2"):
        from floe.catalog.stores.db2 import Db2Store

        return Db2Store()
    raise UnknownStoreError(dialect)


class NoMergingError(FloeError):
    """This store cannot record events."""

    def __init__(self, store: str) -> None:
        super().__init__(
            f"Recording events needs a catalog on SQLite or PostgreSQL; this one is on {store}."
        )


def merging_for(store: str) -> Merging:
    """Return the merging of a store: how it takes many rows at once."""
    if store == "sqlite":
        from floe.catalog.stores.sqlite import SqliteMerging

        return SqliteMerging()
    if store == "postgresql":
        from floe.catalog.stores.postgresql_merging import PostgresqlMerging

        return PostgresqlMerging()
    raise NoMergingError(store)
