"""Sessions for a server: connections stay at hand, and an outage is an error of ours."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from floe.catalog.database import Catalog
from floe.errors import FloeError

# A connection that answered so lately is taken to be alive, without asking it first.
TRUSTED_SECONDS = 1.0


class CatalogAwayError(FloeError):
    """The catalog's database does not answer, or does not take what is written."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The catalog does not answer just now: {reason}. Try again in a moment.")


class _Idle(NamedTuple):
    """A connection at hand, and when it was used last."""

    connection: Connection
    since: float


class Sessions:
    """Hands out sessions of a catalog, and says in our words when its database is away."""

    def __init__(self, catalog: Catalog, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.catalog = catalog
        self._monotonic = monotonic
        self._idle: deque[_Idle] = deque()
        # On a server each statement sees what is committed then, in a transaction or not. To
        # open and close one would only be two more ways there and back.
        options = {} if catalog.store.name == "sqlite" else {"isolation_level": "AUTOCOMMIT"}
        self._engine = catalog.engine.execution_options(**options)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session for queries. What it changes is thrown away."""
        with _outages_explained():
            connection = self._take()
            try:
                with Session(connection, info={"store": self.catalog.store}) as session:
                    yield session
            except BaseException:
                # It may be broken: the pool finds out.
                connection.close()
                raise
            self._idle.append(_Idle(connection, self._monotonic()))

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session that commits at the end."""
        with _outages_explained(), self.catalog.writing() as session:
            yield session

    def close(self) -> None:
        """Give every connection back."""
        while self._idle:
            self._idle.pop().connection.close()

    def _take(self) -> Connection:
        """Take the connection that was used last, or one from the pool, which asks it first."""
        newest = self._monotonic() - TRUSTED_SECONDS
        while True:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                return self._engine.connect()
            if since >= newest:
                return connection
            connection.close()


@contextmanager
def _outages_explained() -> Iterator[None]:
    try:
        yield
    except PoolTimeoutError as error:
        raise CatalogAwayError("all its connections are busy") from error
    except DBAPIError as error:
        if isinstance(error, OperationalError) or error.connection_invalidated:
            raise CatalogAwayError(_first_line(error)) from error
        raise


def _first_line(error: DBAPIError) -> str:
    said = str(error.orig).strip()
    return said.splitlines()[0].rstrip(".") if said else type(error).__name__
