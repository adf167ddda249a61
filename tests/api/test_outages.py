"""Database outages: senders must retry, readiness reports it, and floe recovers."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import event as listening
from starlette.testclient import TestClient

from floe.api import create_app
from floe.catalog.database import Catalog, open_catalog
from floe.execution.os_processes import wait_until
from tests.api.night import event
from tests.conftest import STORES, new_catalog
from tests.events.factory import FOREVER

LINEAGE, BATCH, READINESS = "/api/v1/lineage", "/api/v1/lineage/batch", "/api/v1/readiness"
PAGE = 4096
Outage = Callable[[Catalog], AbstractContextManager[None]]
POSTGRESQL = pytest.mark.postgresql


@pytest.fixture(params=STORES)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    with new_catalog(request, tmp_path) as catalog:
        yield catalog


def run(catalog: Catalog, *statements: str) -> None:
    """Run statements on a separate connection."""
    url = catalog.engine.url
    connection: Any
    if url.get_backend_name() == "sqlite":
        connection = sqlite3.connect(str(url.database), isolation_level=None)
    else:
        plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
        connection = psycopg.connect(plain, autocommit=True)
    with closing(connection):
        for statement in statements:
            connection.execute(statement)


@contextmanager
def read_only(catalog: Catalog) -> Iterator[None]:
    """A failover to a replica: existing connections die, new ones can only read."""
    name = catalog.engine.url.database
    kill = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    run(catalog, f"ALTER DATABASE {name} SET default_transaction_read_only = on", kill)
    yield
    run(
        catalog,
        "SET default_transaction_read_only = off",
        f"ALTER DATABASE {name} RESET default_transaction_read_only",
    )


@contextmanager
def missing_table(catalog: Catalog) -> Iterator[None]:
    run(catalog, "ALTER TABLE process_run RENAME TO process_run_away")
    yield
    run(catalog, "ALTER TABLE process_run_away RENAME TO process_run")


@contextmanager
def corrupted_file(catalog: Catalog) -> Iterator[None]:
    """Write garbage to every page but the first."""
    run(catalog, "PRAGMA wal_checkpoint(TRUNCATE)")
    file = Path(str(catalog.engine.url.database))
    good = file.read_bytes()
    _overwrite(file, good[:PAGE] + os.urandom(len(good) - PAGE))
    yield
    _overwrite(file, good)


def _overwrite(file: Path, content: bytes) -> None:
    # In place, because open connections would not see a new file of the same name.
    with file.open("r+b") as opened:
        opened.write(content)


@contextmanager
def full_disk(catalog: Catalog) -> Iterator[None]:
    """Prevent the file from growing."""
    full = True

    def limit(connection: object, _: object) -> None:
        if full:
            connection.execute("PRAGMA max_page_count = 1")  # type: ignore[attr-defined]

    listening.listen(catalog.engine, "connect", limit)
    catalog.engine.dispose()
    yield
    full = False
    catalog.engine.dispose()


OUTAGES = [
    pytest.param("postgresql", read_only, marks=POSTGRESQL),
    pytest.param("postgresql", missing_table, marks=POSTGRESQL),
    ("sqlite", missing_table),
    ("sqlite", corrupted_file),
]


@pytest.mark.parametrize(("catalog", "outage"), OUTAGES, indirect=["catalog"])
def test_an_outage_is_503_until_it_is_over(catalog: Catalog, outage: Outage) -> None:
    with TestClient(create_app(catalog, login=False, retention=FOREVER)) as client:
        client.headers["Host"] = "127.0.0.1"
        assert client.post(LINEAGE, json=event()).status_code == 201
        with outage(catalog):
            answer = client.post(LINEAGE, json=event(day="2026-09-02"))
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2"), answer.text
            assert client.post(BATCH, json=[event(day="2026-09-03")]).status_code == 503
            assert client.get(READINESS).status_code == 503
            assert client.get("/api/v1/health").status_code == 200
        assert wait_until(lambda: client.get(READINESS).status_code == 200, 30)
        assert client.post(LINEAGE, json=event(day="2026-09-02")).status_code == 201


def test_a_full_disk_is_503_until_there_is_room(sqlite_template: Path, tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    file.write_bytes(sqlite_template.read_bytes())
    catalog = open_catalog(f"sqlite:///{file}")
    large = {**event(), "producer": os.urandom(100_000).hex()}
    with ExitStack() as stack:
        outage = stack.enter_context(ExitStack())
        outage.enter_context(full_disk(catalog))
        client = stack.enter_context(TestClient(create_app(catalog, login=False)))
        client.headers["Host"] = "127.0.0.1"
        assert client.post(LINEAGE, json=large).status_code == 503
        assert client.get(READINESS).status_code == 503
        outage.close()
        assert wait_until(lambda: client.get(READINESS).status_code == 200, 30)
        assert client.post(LINEAGE, json=large).status_code == 201
    catalog.close()


@pytest.mark.parametrize(("catalog", "outage"), OUTAGES[2:3], indirect=["catalog"])
def test_an_event_sent_during_an_outage_is_stored_afterwards(
    catalog: Catalog, outage: Outage
) -> None:
    with TestClient(create_app(catalog, login=False, retention=FOREVER)) as client:
        client.headers["Host"] = "127.0.0.1"
        with outage(catalog):
            assert client.post(LINEAGE, json=event()).status_code == 503
            assert "no such table" in client.get(READINESS).json()["detail"]
        assert wait_until(lambda: client.get(READINESS).status_code == 200, 30)
        assert len(client.get("/api/v1/events").json()["items"]) == 1
