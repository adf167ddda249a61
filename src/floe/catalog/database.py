"""Open the catalog's database and hand out sessions: one kind that reads, one that writes."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from floe.catalog.changes import write_pending_changes
from floe.catalog.stores import Store, store_for
from floe.errors import FloeError
from floe.settings import (
    STATE_FOLDER,
    keep_private,
    make_private_file,
    make_private_folder,
)

# What a database raises while it does not answer. It may be back soon.
OUTAGES = (OperationalError, InterfaceError)


class CatalogUrlError(FloeError):
    """The catalog's URL cannot be read as one."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The catalog's URL is not one: {reason}. "
            "Write it as sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE."
        )


class CatalogUnreachableError(FloeError):
    """The catalog's database does not answer, or its file cannot be used."""

    def __init__(self, url: URL, reason: str) -> None:
        super().__init__(
            f"The catalog at {url.render_as_string(hide_password=True)} does not answer: {reason}. "
            "Check that it is up and that the URL is right."
        )


@dataclass(frozen=True)
class Catalog:
    """An open catalog: its engine, and the store that knows the engine's own ways."""

    engine: Engine
    store: Store

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session for queries. What it changes is thrown away."""
        with Session(self.engine, info={"store": self.store}) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session that commits at the end, its changes last, or rolls back on an error."""
        engine = self.engine.execution_options(floe_writing=True)
        with Session(engine, info={"store": self.store}, expire_on_commit=False) as session:
            yield session
            write_pending_changes(session)
            session.commit()

    @property
    def fingerprint(self) -> str:
        """A short hash of where the catalog is, the same for every process that opens it."""
        url = self.engine.url.render_as_string(hide_password=True)
        return hashlib.sha256(url.encode()).hexdigest()[:12]

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def open_catalog(url: str) -> Catalog:
    """Open the catalog at a URL, without looking at what is in it."""
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
            for beside in ("-wal", "-shm"):
                if STATE_FOLDER in file.parts:
                    keep_private(file.with_name(file.name + beside))
    except OSError as error:
        raise CatalogUnreachableError(url, str(error)) from error
