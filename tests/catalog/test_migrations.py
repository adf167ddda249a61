"""Migrations go up and down, match the models, and may run concurrently."""

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from floe.catalog.changes import last_position
from floe.catalog.database import Catalog, CatalogUnreachableError, open_catalog
from floe.catalog.migrate import (
    SCRIPTS,
    VERSION_TABLE,
    CatalogOutdatedError,
    CatalogTooNewError,
    UnknownDialectError,
    catalog_revision,
    check_catalog,
    ddl,
    known_revisions,
    open_ready_catalog,
    upgrade_catalog,
)
from floe.catalog.tables import Table
from tests.catalog.downgrade import downgrade_catalog

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "catalog.md"
HEAD = known_revisions()[-1]
MOMENT = "'2026-09-01 12:00:00'"
VIEW_COLUMNS = [
    "schema_id",
    "dataset_version_id",
    "column_order",
    "column_name",
    "column_type",
    "nullable",
    "column_metadata",
]
# PostgreSQL's event table has its own key, which a test below checks.
POSTGRESQL_ONLY = {"idx_event_id", "uq_run_event_event_day_event_hash"}


@pytest.fixture
def empty(catalog_url: str) -> Iterator[Catalog]:
    """A catalog without tables."""
    catalog = open_catalog(catalog_url)
    yield catalog
    catalog.close()


def set_revision(catalog: Catalog, revision: str) -> None:
    with catalog.engine.begin() as connection:
        connection.execute(
            text(f"UPDATE {VERSION_TABLE} SET version_num = :revision"), {"revision": revision}
        )


def tables(catalog: Catalog) -> set[str]:
    inspector = inspect(catalog.engine)
    return set(inspector.get_table_names()) | set(inspector.get_view_names())


def test_every_revision_upgrades_and_downgrades(empty: Catalog) -> None:
    steps = ["base", *known_revisions()]
    seen = []
    for revision in steps[1:]:
        upgrade_catalog(empty, revision)
        seen.append(tables(empty))
        assert catalog_revision(empty) == revision
    for index in reversed(range(len(seen))):
        assert tables(empty) == seen[index]
        downgrade_catalog(empty, steps[index])
    assert tables(empty) == {VERSION_TABLE}
    upgrade_catalog(empty)
    check_catalog(empty)


def test_column_edges_survive_the_change_of_their_key(empty: Catalog) -> None:
    edge = (1, "amount", 2, "rate", 3, "DIRECT", "0123")
    upgrade_catalog(empty, "0001")
    with empty.engine.begin() as connection:
        values = ", ".join(repr(value) for value in edge)
        connection.exec_driver_sql(
            "INSERT INTO column_edge (target_dataset_id, target_column, source_dataset_id, "
            f"source_column, process_id, kind, lineage_hash) VALUES ({values})"
        )
    upgrade_catalog(empty, "0002")
    with empty.engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT * FROM column_edge").all() == [edge]
    downgrade_catalog(empty, "0001")
    with empty.engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT * FROM column_edge").all() == [(1, *edge)]


def test_datasets_curated_before_the_column_existed_are_marked(empty: Catalog) -> None:
    upgrade_catalog(empty, "0002")
    with empty.engine.begin() as connection:
        for name in ("asked", "changed", "observed"):
            connection.exec_driver_sql(
                "INSERT INTO dataset (namespace, name, full_name, status, needs_validation, "
                f"created_at) VALUES ('lake', '{name}', 'lake/{name}', 'ACTIVE', 'N', {MOMENT})"
            )
        connection.exec_driver_sql(
            "INSERT INTO dataset_registration (dataset_id, submitted_by, submitted_at, status) "
            f"SELECT dataset_id, 'ann', {MOMENT}, 'PENDING' FROM dataset WHERE name = 'asked'"
        )
        connection.exec_driver_sql(
            "INSERT INTO audit_log (occurred_at, actor, action, object_type, object_key) "
            f"VALUES ({MOMENT}, 'ann', 'dataset.update', 'DATASET', 'lake/changed')"
        )
    upgrade_catalog(empty, "0003")
    with empty.engine.begin() as connection:
        rows = connection.exec_driver_sql("SELECT name, curated FROM dataset ORDER BY name").all()
    assert rows == [("asked", "Y"), ("changed", "Y"), ("observed", "N")]


def test_models_and_migrations_agree(catalog: Catalog) -> None:
    def included(_object: Any, name: str, kind: str, reflected: bool, _other: Any) -> bool:
        if kind == "table" and reflected:
            # Tables of one store only: its full-text index, its partitions.
            return not name.startswith(("dataset_search", "run_event_", VERSION_TABLE))
        return not (catalog.store.name == "postgresql" and name in POSTGRESQL_ONLY)

    with catalog.engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"include_object": included, "compare_type": True}
        )
        assert compare_metadata(context, Table.metadata) == []


def test_primary_keys_agree_with_the_models(catalog: Catalog) -> None:
    inspector = inspect(catalog.engine)
    keys = {
        name: inspector.get_pk_constraint(name)["constrained_columns"]
        for name in Table.metadata.tables
    }
    wanted = {
        name: table.primary_key.columns.keys() for name, table in Table.metadata.tables.items()
    }
    if catalog.store.name == "postgresql":
        wanted["run_event"] = ["event_day", "event_hash"]
    assert keys == wanted


def test_the_view_shows_the_columns_of_each_version(catalog: Catalog) -> None:
    inspector = inspect(catalog.engine)
    assert inspector.get_view_names() == ["dataset_version_schema"]
    columns = inspector.get_columns("dataset_version_schema")
    assert [column["name"] for column in columns] == VIEW_COLUMNS


def test_the_reference_names_every_table_and_column(catalog: Catalog) -> None:
    inspector = inspect(catalog.engine)
    wanted = {name: table.columns.keys() for name, table in Table.metadata.tables.items()}
    views = {
        name: [column["name"] for column in inspector.get_columns(name)]
        for name in inspector.get_view_names()
    }
    assert documented_columns() == {**wanted, **views}


def documented_columns() -> dict[str, list[str]]:
    """Read docs/reference/catalog.md: a heading for each table, a row for each column."""
    _, *sections = re.split(r"^### ", REFERENCE.read_text(), flags=re.MULTILINE)
    columns = re.compile(r"^\| (\w+) \| \S", re.MULTILINE)
    return {
        section.split()[0]: [name for name in columns.findall(section) if name != "column"]
        for section in sections
    }


def test_a_new_catalog_starts_its_changes_at_zero(catalog: Catalog) -> None:
    with catalog.reading() as session:
        assert last_position(session) == 0


def test_the_revisions_read_from_file_names_are_those_of_alembic() -> None:
    scripts = ScriptDirectory(str(SCRIPTS))
    assert scripts.get_heads() == [HEAD]
    assert [script.revision for script in scripts.walk_revisions()] == known_revisions()[::-1]


def test_processes_that_upgrade_at_once_wait_for_each_other(empty: Catalog) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(upgrade_catalog, [empty] * 4))
    check_catalog(empty)


def test_a_migration_that_fails_leaves_nothing_behind(empty: Catalog) -> None:
    with empty.engine.begin() as connection:
        connection.execute(text("CREATE TABLE lease (name INTEGER)"))
    with pytest.raises(Exception, match="lease"):
        upgrade_catalog(empty)
    assert tables(empty) == {"lease"}


def test_a_catalog_without_tables_names_the_command_to_run(empty: Catalog) -> None:
    with pytest.raises(CatalogOutdatedError, match=r"no tables yet.* Run: floe catalog upgrade"):
        check_catalog(empty)


def test_a_catalog_of_an_older_floe_names_the_command_to_run(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floe.catalog.migrate.known_revisions", lambda: [HEAD, "9998"])
    with pytest.raises(CatalogOutdatedError, match=f"revision {HEAD}.*needs revision 9998"):
        check_catalog(catalog)


def test_a_catalog_of_a_newer_floe_is_not_changed(catalog: Catalog) -> None:
    set_revision(catalog, "9999")
    with pytest.raises(CatalogTooNewError, match="revision 9999"):
        check_catalog(catalog)
    with pytest.raises(CatalogTooNewError):
        open_ready_catalog(str(catalog.engine.url))


def test_an_embedded_catalog_is_migrated_automatically(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state' / 'catalog.db'}"
    for _ in ("created", "opened again"):
        catalog = open_ready_catalog(url)
        check_catalog(catalog)
        catalog.close()


def test_an_embedded_catalog_is_the_same_as_a_migrated_one(tmp_path: Path) -> None:
    created = open_ready_catalog(f"sqlite:///{tmp_path / 'created.db'}")
    migrated = open_catalog(f"sqlite:///{tmp_path / 'migrated.db'}")
    upgrade_catalog(migrated)
    # If they differ: floe catalog ddl --dialect sqlite > src/floe/catalog/migrations/new_sqlite.sql
    assert content(created) == content(migrated)
    created.close()
    migrated.close()


def content(catalog: Catalog) -> dict[str, Any]:
    """Return everything in an SQLite catalog: tables, indexes, views and rows."""
    with catalog.engine.connect() as connection:
        declared = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master ORDER BY name")
        schema: dict[str, Any] = {row.name: row.sql and row.sql.split() for row in declared}
        rows = {
            name: connection.exec_driver_sql(f"SELECT * FROM {name}").all()
            for name in inspect(connection).get_table_names()
        }
    return {**schema, "rows": rows}


def test_an_embedded_catalog_is_created_without_loading_alembic(tmp_path: Path) -> None:
    code = (
        "import sys; from floe.catalog import open_ready_catalog; "
        f"open_ready_catalog('sqlite:///{tmp_path / 'catalog.db'}').close(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "alembic" not in done.stdout.split()


def test_processes_that_create_an_embedded_catalog_at_once_all_succeed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    with ThreadPoolExecutor(4) as pool:
        for catalog in pool.map(open_ready_catalog, [url] * 4):
            check_catalog(catalog)
            catalog.close()


def test_an_emptied_embedded_catalog_gets_its_tables_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    catalog = open_ready_catalog(url)
    downgrade_catalog(catalog, "base")
    catalog.close()
    again = open_ready_catalog(url)
    check_catalog(again)
    again.close()


@pytest.mark.postgresql
@pytest.mark.parametrize("catalog_url", ["postgresql"], indirect=True)
def test_a_server_catalog_is_not_upgraded_automatically(catalog_url: str, empty: Catalog) -> None:
    with pytest.raises(CatalogOutdatedError):
        open_ready_catalog(catalog_url)
    upgrade_catalog(empty)
    open_ready_catalog(catalog_url).close()


def test_the_printed_sql_creates_the_same_catalog(empty: Catalog) -> None:
    script = ddl(empty.store.name)
    with empty.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        run = driver.executescript if empty.store.name == "sqlite" else driver.execute
        run(script)
    check_catalog(empty)
    assert set(Table.metadata.tables) < tables(empty)


def test_sql_for_an_unknown_dialect_names_the_known_ones() -> None:
    with pytest.raises(UnknownDialectError, match="sqlite, postgresql, db2"):
        ddl("oracle")


def test_a_server_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(CatalogUnreachableError, match=r"ada:\*\*\*@127.0.0.1:1/c.*Check that"):
        open_ready_catalog("postgresql+psycopg://ada:secret@127.0.0.1:1/c")


def test_a_file_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CatalogUnreachableError, match=r"Not a directory|File exists"):
        open_ready_catalog(f"sqlite:///{tmp_path / 'file' / 'catalog.db'}")


def test_a_file_that_is_not_a_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("These are not the tables you are looking for." * 100)
    with pytest.raises(CatalogUnreachableError, match="not a database"):
        open_ready_catalog(f"sqlite:///{tmp_path / 'catalog.db'}")
