"""What a database has to offer to be the catalog's store. One module per store implements it."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol

from sqlalchemy import URL, ColumnElement, Connection, Engine, Subquery
from sqlalchemy.orm import Session

from floe.catalog.stores.faults import Fault
from floe.catalog.tables import Table


@dataclass(frozen=True)
class SearchDocument:
    """The words by which a dataset is found, the weightiest field first."""

    dataset_id: int
    name: str
    tags: str
    owner: str
    columns: str
    description: str


class Store(Hashable, Protocol):
    """The part of the catalog that differs from database to database."""

    name: str
    search_key: str  # the column of dataset_search that holds the number of the dataset

    def engine_options(self, url: URL) -> dict[str, Any]:
        """Say how the engine is to be made: time-outs, pool. What the URL says goes first."""

    def prepare_engine(self, engine: Engine) -> None:
        """Set up what every connection needs: pragmas, transaction modes."""

    def fault_of(self, error: BaseException) -> Fault:
        """Tell whose fault an error of the driver is."""

    def lock_migrations(self, connection: Connection) -> None:
        """Wait until no other process migrates; hold the lock until the transaction ends."""

    def upsert(
        self,
        session: Session,
        table: type[Table],
        rows: Sequence[dict[str, Any]],
        key: Sequence[str],
        update: Sequence[str],
    ) -> None:
        """Insert rows; where the key is there already, overwrite the `update` columns.

        All rows have the same columns, named as in the database. A key that comes twice is
        written once, its last row wins. Rows are written in the order of their keys, so that
        two writers of the same rows wait for each other and do not deadlock. Objects of this
        table that the session has loaded keep their old values until they are refreshed.
        """

    def among(self, column: ColumnElement[int], values: Sequence[int] | str) -> ColumnElement[bool]:
        """Say that a column is one of many numbers, in one bound parameter where possible.

        A text names the parameter that will hold them: a statement that runs often is then
        built once.
        """

    def search_ddl(self) -> Sequence[str]:
        """The statements that create the full-text index `dataset_search`, for the migration."""

    def index_documents(self, session: Session, documents: Sequence[SearchDocument]) -> None:
        """Make datasets findable by these words, one document each, replacing the one before."""

    def drop_documents(self, session: Session, dataset_ids: Sequence[int]) -> None:
        """Make datasets that are gone unfindable."""

    def matches(self, words: Sequence[str]) -> Subquery:
        """Find datasets that hold every word, the last one as a prefix: (dataset_id, rank).

        The lower the rank, the better the match.
        """

    def prepare_event_days(self, session: Session, first: date, last: date) -> None:
        """Make room for events of these days ahead of time, where the store partitions them.

        Safe to repeat, and safe when several processes do it at once.
        """

    def drop_event_days(self, session: Session, before: date) -> int:
        """Remove the raw events of all days before this one; return how many days went."""
