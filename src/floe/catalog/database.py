"""Open the catalog's database, provide sessions, and count rows."""

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import URL, Connection, Engine, create_engine, func, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from floe.catalog.changes import write_pending_changes
from floe.catalog.stores import Fault, Store, store_for
from floe.catalog.tables import (
    Change,
    ColumnEdge,
    Dataset,
    DatasetRegistration,
    DatasetSchema,
    DatasetVersion,
    LineageEdge,
    Process,
    ProcessRun,
    Project,
    QualityCheckDef,
    QualityCheckResult,
    RunEvent,
    Sla,
    Table,
)
from floe.errors import FloeError
from floe.settings import STATE_FOLDER, keep_private, make_private_file, make_private_folder

if TYPE_CHECKING:
    from floe.spec.platform import CatalogDatabase

# What a database raises while it is unavailable, perhaps only for a short time.
OUTAGES = (OperationalError, InterfaceError)


class CatalogUrlError(FloeError):
    """The catalog's URL is invalid."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"Invalid catalog URL: {reason}. "
            "Write it as sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE."
        )


class CatalogUnreachableError(FloeError):
    """The catalog's database does not answer, or its file cannot be used."""

    def __init__(self, url: URL, reason: str) -> None:
        super().__init__(
            f"The catalog at {url.render_as_string(hide_password=True)} does not answer: {reason}. "
            "Check that the database is up and that the URL is correct."
        )


@dataclass(frozen=True)
class Catalog:
    """An open catalog: its engine and the store for that kind of database."""

    engine: Engine
    store: Store

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session for queries. What it changes is thrown away."""
        with Session(self.engine, info={"store": self.store}) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session that commits at the end, or rolls back on an error.

        Queued changes are written last.
        """
        engine = self.engine.execution_options(floe_writing=True)
        with Session(engine, info={"store": self.store}, expire_on_commit=False) as session:
            yield session
            write_pending_changes(session)
            session.commit()

    @property
    def fingerprint(self) -> str:
        """A short hash of the catalog's URL, the same in every process that opens it."""
        url = self.engine.url.render_as_string(hide_password=True)
        return hashlib.sha256(url.encode()).hexdigest()[:12]

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def open_catalog(url: str) -> Catalog:
    """Open the catalog at a URL without checking its tables."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise CatalogUrlError(str(error)) from error
    store = store_for(parsed.get_backend_name())
    if store.name == "sqlite" and parsed.database:
        _make_private(parsed, Path(parsed.database))
    engine = create_engine(parsed, **store.engine_options(parsed))
    store.prepare_engine(engine)
    return Catalog(engine, store)


def _make_private(url: URL, file: Path) -> None:
    try:
        make_private_folder(file.parent)
        if not str(file).startswith((":", "file:")):
            make_private_file(file)
            for suffix in ("-wal", "-shm"):
                if STATE_FOLDER in file.parts:
                    keep_private(file.with_name(file.name + suffix))
    except OSError as error:
        raise CatalogUnreachableError(url, str(error)) from error


def catalog_url(
    database: "CatalogDatabase", *, root: Path, environ: Mapping[str, str], secrets: Path
) -> URL:
    """Complete a catalog's URL: resolve a relative file, add user and password."""
    try:
        url = make_url(database.url)
    except ArgumentError as error:
        raise CatalogUrlError(str(error)) from error
    if url.get_backend_name() == "sqlite" and url.database:
        return url.set(database=str(root / url.database))
    if database.user is not None:
        url = url.set(username=database.user)
    if database.password is not None:
        url = url.set(password=database.password.resolve(environ, secrets))
    return url


# A connection used within this time is assumed to be alive, without a test query.
TRUSTED_SECONDS = 1.0

# At most this many idle sessions are kept. The pool needs the others: for writers and peaks.
MAX_IDLE = 4


class CatalogOutageError(FloeError):
    """The catalog's database is unavailable."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The catalog is unavailable: {reason}. Try again in a moment.")


class _Idle(NamedTuple):
    """An idle session with its connection, and when it was last used."""

    session: Session
    since: float


class Sessions:
    """Provides sessions of a catalog; reports an outage as CatalogOutageError."""

    def __init__(self, catalog: Catalog, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.catalog = catalog
        self._monotonic = monotonic
        self._idle: deque[_Idle] = deque()
        # On a server each statement sees the rows committed by then, with or without a
        # transaction. Opening and closing one would only cost two more round trips.
        self._snapshots = catalog.store.name == "sqlite"
        options = {} if self._snapshots else {"isolation_level": "AUTOCOMMIT"}
        self._engine = catalog.engine.execution_options(**options)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session for queries. What it changes is thrown away."""
        with _translate_outages(self.catalog):
            session = self._take()
            try:
                yield session
                if self._snapshots:
                    session.rollback()
                session.expunge_all()
            except BaseException:
                # The connection may be broken: return it to the pool, which checks it.
                _end(session)
                raise
            if len(self._idle) < MAX_IDLE:
                self._idle.append(_Idle(session, self._monotonic()))
            else:
                _end(session)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session that commits at the end."""
        with _translate_outages(self.catalog), self.catalog.writing() as session:
            yield session

    def close(self) -> None:
        """Return every connection to the pool."""
        while self._idle:
            _end(self._idle.pop().session)

    def _take(self) -> Session:
        """Take the session used last, or a connection from the pool, which tests it."""
        oldest_trusted = self._monotonic() - TRUSTED_SECONDS
        while True:
            try:
                session, since = self._idle.pop()
            except IndexError:
                return self._open()
            if since >= oldest_trusted:
                return session
            _end(session)

    def _open(self) -> Session:
        # No autoflush: the session only reads, and there may be no transaction to roll back.
        info = {"store": self.catalog.store}
        return Session(self._engine.connect(), info=info, autoflush=False)


def _end(session: Session) -> None:
    bound = session.get_bind()
    session.close()
    if isinstance(bound, Connection):
        bound.close()


@contextmanager
def _translate_outages(catalog: Catalog) -> Iterator[None]:
    try:
        yield
    except PoolTimeoutError as error:
        raise CatalogOutageError("all its connections are busy") from error
    except DBAPIError as error:
        fault = catalog.store.fault_of(error.orig or error)
        lost = isinstance(error, OperationalError) or error.connection_invalidated
        if lost or fault is Fault.DATABASE:
            raise CatalogOutageError(_first_line(error)) from error
        raise


def _first_line(error: DBAPIError) -> str:
    message = str(error.orig).strip()
    return message.splitlines()[0].rstrip(".") if message else type(error).__name__


COUNTED_TABLES: dict[str, type[Table]] = {
    "projects": Project,
    "datasets": Dataset,
    "versions": DatasetVersion,
    "processes": Process,
    "runs": ProcessRun,
    "edges": LineageEdge,
    "column_edges": ColumnEdge,
    "slas": Sla,
    "checks": QualityCheckDef,
    "check_results": QualityCheckResult,
    "registrations": DatasetRegistration,
    "events": RunEvent,
    "changes": Change,
}


def count_rows(session: Session) -> dict[str, int]:
    """Return the number of rows of each main table, and of distinct schemas."""
    counts = {
        name: select(func.count()).select_from(table).scalar_subquery()
        for name, table in COUNTED_TABLES.items()
    }
    schemas = select(func.count(DatasetSchema.schema_hash.distinct())).scalar_subquery()
    columns = [count.label(name) for name, count in {**counts, "schemas": schemas}.items()]
    return dict(session.execute(select(*columns)).mappings().one())
