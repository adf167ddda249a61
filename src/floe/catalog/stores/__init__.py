"""The databases that the catalog can live in, and what differs between them."""

from sqlalchemy.orm import Session

from floe.catalog.stores.contract import SearchDocument, Store
from floe.catalog.stores.faults import Fault
from floe.errors import FloeError

__all__ = ["Fault", "SearchDocument", "Store", "UnknownStoreError", "store_for", "store_of"]


class UnknownStoreError(FloeError):
    """The catalog's URL names a database that floe has no store for."""

    def __init__(self, dialect: str) -> None:
        super().__init__(
            f"The catalog cannot live in '{dialect}'. "
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
