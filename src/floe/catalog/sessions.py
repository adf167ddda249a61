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
from floe.catalog.stores import Fault
from floe.errors import FloeError

# A connection that answered so lately is taken to be alive, without asking it first.
TRUSTED_SECONDS = 1.0
# So many wait at hand. The pool needs the others: for writers, and for the next rush.
MOST_IDLE = 4


class CatalogAwayError(FloeError):
    """The catalog's database does not answer, or does not take what is written."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The catalog does not answer just now: {reason}. Try again in a moment.")


class _Idle(NamedTuple):
    """A session at hand with its connection, and when it was used last."""

    session: Session
    since: float


class Sessions:
    """Hands out sessions of a catalog, and says in our words when its database is away."""

    def __init__(self, catalog: Catalog, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.catalog = catalog
        self._monotonic = monotonic
        self._idle: deque[_Idle] = deque()
        # On a server each statement sees what is committed then, in a transaction or not. To
        # open and close one would only be two more ways there and back.
        self._snapshots = catalog.store.name == "sqlite"
        options = {} if self._snapshots else {"isolation_level": "AUTOCOMMIT"}
        self._engine = catalog.engine.execution_options(**options)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session for queries. What it changes is thrown away."""
        with _outages_explained(self.catalog):
            session = self._take()
            try:
                yield session
                if self._snapshots:
                    session.rollback()
                session.expunge_all()
            except BaseException:
                # It may be broken: the pool finds out.
                _end(session)
                raise
            if len(self._idle) < MOST_IDLE:
                self._idle.append(_Idle(session, self._monotonic()))
            else:
                _end(session)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session that commits at the end."""
        with _outages_explained(self.catalog), self.catalog.writing() as session:
            yield session

    def close(self) -> None:
        """Give every connection back."""
        while self._idle:
            _end(self._idle.pop().session)

    def _take(self) -> Session:
        """Take the session that was used last, or a connection from the pool, which asks it."""
        newest = self._monotonic() - TRUSTED_SECONDS
        while True:
            try:
                session, since = self._idle.pop()
            except IndexError:
                return self._open()
            if since >= newest:
                return session
            _end(session)

    def _open(self) -> Session:
        # Never flushed by itself: it is for reading, and there may be nothing to roll back to.
        info = {"store": self.catalog.store}
        return Session(self._engine.connect(), info=info, autoflush=False)


def _end(session: Session) -> None:
    bound = session.get_bind()
    session.close()
    if isinstance(bound, Connection):
        bound.close()


@contextmanager
def _outages_explained(catalog: Catalog) -> Iterator[None]:
    try:
        yield
    except PoolTimeoutError as error:
        raise CatalogAwayError("all its connections are busy") from error
    except DBAPIError as error:
        fault = catalog.store.fault_of(error.orig or error)
        lost = isinstance(error, OperationalError) or error.connection_invalidated
        if lost or fault is Fault.DATABASE:
            raise CatalogAwayError(_first_line(error)) from error
        raise


def _first_line(error: DBAPIError) -> str:
    said = str(error.orig).strip()
    return said.splitlines()[0].rstrip(".") if said else type(error).__name__
