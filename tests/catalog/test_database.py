"""Opening a catalog; reading and writing sessions."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from floe import clock
from floe.catalog.database import Catalog, CatalogUrlError, open_catalog
from floe.catalog.stores import UnknownStoreError, store_of
from floe.catalog.tables import DatasetTag, Lease

on_sqlite = pytest.mark.parametrize("catalog", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize(
    "catalog", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True
)
OPEN_AT_ONCE = """
import sys
from floe.catalog.migrate import open_ready_catalog
sys.stdin.readline()
open_ready_catalog(sys.argv[1]).close()
"""


def new_lease(name: str) -> Lease:
    now = clock.now()
    return Lease(name=name, holder="ada", fence=1, acquired_at=now, expires_at=now)


def add_lease(catalog: Catalog, name: str) -> None:
    with catalog.writing() as session:
        session.add(new_lease(name))


def lease_names(catalog: Catalog) -> list[str]:
    with catalog.reading() as session:
        return list(session.scalars(select(Lease.name).order_by(Lease.name)))


def test_writing_commits_at_the_end(catalog: Catalog) -> None:
    add_lease(catalog, "orders")
    assert lease_names(catalog) == ["orders"]


def test_an_error_while_writing_rolls_everything_back(catalog: Catalog) -> None:
    with pytest.raises(IntegrityError), catalog.writing() as session:
        session.add_all([new_lease("orders"), new_lease("orders")])
    assert lease_names(catalog) == []


def test_changes_of_a_reader_are_discarded(catalog: Catalog) -> None:
    add_lease(catalog, "orders")
    with catalog.reading() as session:
        session.scalars(select(Lease)).one().holder = "bob"
    with catalog.reading() as session:
        assert session.scalars(select(Lease.holder)).one() == "ada"


def test_a_reference_to_a_missing_row_is_rejected(catalog: Catalog) -> None:
    with pytest.raises(IntegrityError), catalog.writing() as session:
        session.add(DatasetTag(dataset_id=404, tag="daily"))


def test_a_session_knows_its_store(catalog: Catalog) -> None:
    with catalog.reading() as session:
        assert store_of(session) is catalog.store


def test_many_writers_at_once_all_succeed(catalog: Catalog) -> None:
    names = [f"lease {index:03}" for index in range(60)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: add_lease(catalog, name), names))
    assert lease_names(catalog) == names


@on_sqlite
@pytest.mark.parametrize("kind", ["reading", "writing"])
def test_sqlite_is_durable_and_checks_references(catalog: Catalog, kind: str) -> None:
    wanted = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}
    with getattr(catalog, kind)() as session:
        settings = {name: session.scalar(text(f"PRAGMA {name}")) for name in wanted}
    assert settings == wanted


@on_sqlite
def test_a_writer_does_not_block_a_reader_on_sqlite(catalog: Catalog) -> None:
    with catalog.writing() as writer:
        writer.execute(text("UPDATE change_head SET last_position = 7"))
        assert lease_names(catalog) == []


def test_several_processes_can_create_an_embedded_catalog_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN_AT_ONCE, url], stdin=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in started:
        process.communicate("now\n", timeout=60)
    assert [process.returncode for process in started] == [0, 0, 0]


@on_postgresql
def test_settings_in_the_url_take_precedence(catalog: Catalog) -> None:
    named = open_catalog(f"{catalog.engine.url}?application_name=nightly")
    with named.reading() as session:
        assert session.scalar(text("SHOW application_name")) == "nightly"
        assert session.scalar(text("SHOW idle_in_transaction_session_timeout")) == "5min"
    named.close()


@on_postgresql
def test_a_connection_that_died_is_replaced(catalog: Catalog) -> None:
    assert lease_names(catalog) == []
    other = open_catalog(str(catalog.engine.url))
    with other.writing() as session:
        session.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    other.close()
    assert lease_names(catalog) == []


def test_a_missing_folder_is_created(tmp_path: Path) -> None:
    open_catalog(f"sqlite:///{tmp_path / 'a' / 'b' / 'catalog.db'}").close()
    assert (tmp_path / "a" / "b").is_dir()


def test_an_invalid_url_is_rejected_with_an_example() -> None:
    with pytest.raises(CatalogUrlError, match="sqlite:///FILE"):
        open_catalog("catalog.db")


def test_an_unsupported_database_is_rejected() -> None:
    with pytest.raises(UnknownStoreError, match="'mysql'"):
        open_catalog("mysql://localhost/catalog")
