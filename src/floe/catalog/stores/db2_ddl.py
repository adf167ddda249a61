"""DB2 for Alembic, which does not know it by itself. To import this module is to register it."""

from typing import Any

from alembic.ddl.impl import DefaultImpl
from sqlalchemy import Dialect

from floe.catalog.stores.db2 import adapt


class Db2Impl(DefaultImpl):
    """DB2's migrations: transactional, with tables as floe wants them written."""

    __dialect__ = "ibm_db_sa"
    transactional_ddl = True

    def __init__(self, dialect: Dialect, *rest: Any, **options: Any) -> None:
        super().__init__(adapt(dialect), *rest, **options)

    def emit_begin(self) -> None:
        """Write nothing: DB2 begins a transaction by itself."""
