"""Every SELECT, UPDATE and DELETE that a catalog test runs must be one that DB2 can be told."""

from collections.abc import Iterator

import pytest
from ibm_db_sa.ibm_db import DB2Dialect_ibm_db
from sqlalchemy import ClauseElement, TextClause, event
from sqlalchemy.orm import ORMExecuteState, Session

from floe.catalog.stores.db2 import adapt

DB2 = adapt(DB2Dialect_ibm_db())


@pytest.fixture(autouse=True, scope="module")
def every_query_compiles_for_db2() -> Iterator[None]:
    """Compile each statement for DB2 before it runs; one that cannot be written fails its test."""
    event.listen(Session, "do_orm_execute", _compile_for_db2)
    yield
    event.remove(Session, "do_orm_execute", _compile_for_db2)


def _compile_for_db2(execution: ORMExecuteState) -> None:
    # Plain rows can be inserted anywhere, and SQL by hand is what a store says to its own database.
    statement = execution.statement
    if execution.is_insert or isinstance(statement, TextClause):
        return
    assert isinstance(statement, ClauseElement)
    written = str(statement.compile(dialect=DB2))
    assert " RETURNING " not in written, f"DB2 has no RETURNING: {written}"
