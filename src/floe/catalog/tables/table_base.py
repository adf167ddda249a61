"""The base class, column annotations and constraint names of all tables."""

from datetime import datetime
from typing import Annotated

from sqlalchemy import Identity, Index, MetaData, String
from sqlalchemy.orm import DeclarativeBase, mapped_column

from floe.catalog.tables.types import Identifier, UtcTime

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Table(DeclarativeBase):
    """Base of all tables. Names are lower case, so that no store needs quotes.

    A column whose name ibm_db_sa treats as a reserved word sets `quote=False`: DB2 allows it
    unquoted, and quoted it would be a different, lower-case column.
    """

    metadata = MetaData(naming_convention=NAMING)


def sparse_index(name: str, column: str) -> Index:
    """Return an index of a column that is usually NULL.

    The migration makes it partial (IS NOT NULL). Declaring that here would import PostgreSQL's
    dialect with the models, even for those who never use it.
    """
    return Index(name, column)


# `always`: only the database assigns ids; inserting an explicit id fails.
RowId = Annotated[int, mapped_column(Identifier, Identity(always=True), primary_key=True)]
Timestamp = Annotated[datetime, mapped_column(UtcTime)]
Short = Annotated[str, mapped_column(String(20))]
Name = Annotated[str, mapped_column(String(200))]
LongName = Annotated[str, mapped_column(String(300))]
FullName = Annotated[str, mapped_column(String(600))]
MAX_PATH_LENGTH = 1000
StoragePath = Annotated[str, mapped_column(String(MAX_PATH_LENGTH))]
SchemaHash = Annotated[str, mapped_column(String(64))]
