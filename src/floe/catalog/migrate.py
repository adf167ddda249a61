"""Bring a catalog's tables to what this version of floe needs, or write them as SQL."""

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, column, inspect, select, table
from sqlalchemy.exc import DatabaseError

from floe.catalog.database import Catalog, CatalogUnreachableError, open_catalog
from floe.errors import FloeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from alembic.config import Config

SCRIPTS = Path(__file__).parent / "migrations"
# What all migrations together make on SQLite, as `floe catalog ddl --dialect sqlite` prints it.
NEW_SQLITE = SCRIPTS / "new_sqlite.sql"
# Not Alembic's own default: Dagster keeps a table of that name, perhaps in the same database.
VERSION_TABLE = "floe_revision"
DIALECTS = {"sqlite": "sqlite", "postgresql": "postgresql", "db2": "ibm_db_sa"}


class CatalogOutdatedError(FloeError):
    """The catalog's tables are older than this version of floe needs."""

    def __init__(self, found: str | None, needed: str) -> None:
        state = f"is at revision {found}" if found else "has no tables yet"
        super().__init__(
            f"The catalog {state}, and this floe needs revision {needed}. Run: floe catalog upgrade"
        )


class CatalogTooNewError(FloeError):
    """The catalog's tables were made by a newer version of floe."""

    def __init__(self, found: str, known: str) -> None:
        super().__init__(
            f"The catalog is at revision {found}, and this floe knows none after {known}. "
            "Install a newer one: pip install --upgrade floe"
        )


class UnknownDialectError(FloeError):
    """SQL was asked for in a dialect that floe does not write."""

    def __init__(self, dialect: str) -> None:
        super().__init__(
            f"floe writes no SQL for '{dialect}'. Choose one of: {', '.join(DIALECTS)}"
        )


def known_revisions() -> list[str]:
    """Return the revisions that this floe knows, the oldest first."""
    # The files' names start with them. To load Alembic for this would slow every command down.
    return sorted(path.name.split("_")[0] for path in (SCRIPTS / "versions").glob("[0-9]*.py"))


def catalog_revision(catalog: Catalog) -> str | None:
    """Return the revision that a catalog is at, None when it has no tables yet."""
    try:
        with catalog.engine.connect() as connection:
            return _read_revision(connection)
    except DatabaseError as error:
        reason = str(error.orig).splitlines()[0].rstrip(".")
        raise CatalogUnreachableError(catalog.engine.url, reason) from error


def _read_revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    revision: str | None = connection.scalar(
        select(column("version_num")).select_from(table(VERSION_TABLE))
    )
    return revision


def check_catalog(catalog: Catalog) -> None:
    """Raise an error unless the catalog is at the newest revision."""
    found, known = catalog_revision(catalog), known_revisions()
    if found == known[-1]:
        return
    if found is None or found in known:
        raise CatalogOutdatedError(found, known[-1])
    raise CatalogTooNewError(found, known[-1])


def open_ready_catalog(url: str) -> Catalog:
    """Open a catalog that can be worked with at once.

    An embedded one is made and upgraded on the way. A server's is upgraded by its operators, so
    there a wrong revision is an error that says what to run.
    """
    catalog = open_catalog(url)
    try:
        _make_ready(catalog)
    except BaseException:
        catalog.close()
        raise
    return catalog


def _make_ready(catalog: Catalog) -> None:
    try:
        check_catalog(catalog)
    except CatalogOutdatedError:
        if catalog.store.name != "sqlite":
            raise
        _make_embedded(catalog)


def _make_embedded(catalog: Catalog) -> None:
    """Make a new file's tables from their SQL, which is there sooner than Alembic is loaded.

    A file that has tables is Alembic's. Whoever comes second finds those of the first.
    """
    with catalog.engine.execution_options(floe_writing=True).begin() as connection:
        if not inspect(connection).get_table_names():
            _run_script(connection, NEW_SQLITE.read_text())
            return
    upgrade_catalog(catalog)


def _run_script(connection: Connection, script: str) -> None:
    # One by one: the driver's own way to run a script would commit before it starts.
    for statement in script.strip().split(";\n\n"):
        connection.exec_driver_sql(statement).close()


def upgrade_catalog(catalog: Catalog, revision: str = "head") -> None:
    """Run the migrations up to a revision, in one transaction. Whoever comes second waits."""
    from alembic import command

    _migrate(catalog, command.upgrade, revision)


def downgrade_catalog(catalog: Catalog, revision: str) -> None:
    """Undo the migrations down to a revision, `base` for all of them. What they made is lost."""
    from alembic import command

    _migrate(catalog, command.downgrade, revision)


def ddl(dialect: str) -> str:
    """Return the SQL that makes a whole catalog: `sqlite`, `postgresql` or `db2`."""
    from alembic import command

    if dialect not in DIALECTS:
        raise UnknownDialectError(dialect)
    output = StringIO()
    config = _config(dialect=DIALECTS[dialect], output=output)
    command.upgrade(config, "head", sql=True)
    return output.getvalue()


def _migrate(catalog: Catalog, run: "Callable[[Config, str], None]", revision: str) -> None:
    with catalog.engine.execution_options(floe_writing=True).begin() as connection:
        catalog.store.lock_migrations(connection)
        run(_config(dialect=connection.dialect.name, connection=connection), revision)


def _config(dialect: str, **attributes: Any) -> "Config":
    from alembic.config import Config

    if dialect == "ibm_db_sa":
        import floe.catalog.stores.db2_ddl  # noqa: F401  (Alembic knows DB2 from here)

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.set_main_option("path_separator", "os")
    config.attributes.update(attributes, dialect=dialect, version_table=VERSION_TABLE)
    return config
