"""Every SELECT, UPDATE and DELETE of a catalog test must also compile for DB2."""

from collections.abc import Iterator

import pytest
from ibm_db_sa.ibm_db import DB2Dialect_ibm_db
from sqlalchemy import ClauseElement, TextClause, event
from sqlalchemy.orm import ORMExecuteState, Session

from floe.catalog.stores.db2 import adapt

DB2 = adapt(DB2Dialect_ibm_db())


@pytest.fixture(autouse=True, scope="module")
def every_query_compiles_for_db2() -> Iterator[None]:
    """Compile each statement for DB2 before it runs; fail the test if that fails."""
    event.listen(Session, "do_orm_execute", _compile_for_db2)
    yield
    event.remove(Session, "do_orm_execute", _compile_for_db2)


def _compile_for_db2(execution: ORMExecuteState) -> None:
    # Not for INSERTs, which work on every database, nor for the SQL text of a specific store.
    statement = execution.statement
    if execution.is_insert or isinstance(statement, TextClause):
        return
    assert isinstance(statement, ClauseElement)
    sql = str(statement.compile(dialect=DB2))
    assert " RETURNING " not in sql, f"DB2 has no RETURNING: {sql}"
