"""What all tables share: how rows, keys and constraints are named."""

from datetime import datetime
from typing import Annotated

from sqlalchemy import Identity, Index, MetaData, String
from sqlalchemy.orm import DeclarativeBase, mapped_column

from floe.catalog.types import Identifier, UtcTime

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Table(DeclarativeBase):
    """Base of all tables. Names are lower case, so that they need quotes on no store.

    A name that ibm_db_sa takes for a reserved word says `quote=False`: DB2 allows it bare, and in
    quotes it would be another, lower-case column.
    """

    metadata = MetaData(naming_convention=NAMING)


def index_of_some(name: str, column: str) -> Index:
    """An index of the rows that have a value at all, where most have none.

    Its condition stands in the migration: said here too, it would load PostgreSQL's dialect with
    the models, for those who never use it.
    """
    return Index(name, column)


# `always` keeps the numbers the database's own: nobody can insert one by hand.
RowId = Annotated[int, mapped_column(Identifier, Identity(always=True), primary_key=True)]
Moment = Annotated[datetime, mapped_column(UtcTime)]
Short = Annotated[str, mapped_column(String(20))]
Name = Annotated[str, mapped_column(String(200))]
LongName = Annotated[str, mapped_column(String(300))]
FullName = Annotated[str, mapped_column(String(600))]
LONGEST_PLACE = 1000
Place = Annotated[str, mapped_column(String(LONGEST_PLACE))]
SchemaHash = Annotated[str, mapped_column(String(64))]
