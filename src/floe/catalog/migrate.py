"""Upgrade a catalog's tables to the revision that floe needs, or print their SQL."""

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, column, inspect, select, table
from sqlalchemy.exc import DatabaseError

from floe.catalog.database import Catalog, CatalogUnreachableError, open_catalog
from floe.errors import FloeError

if TYPE_CHECKING:
    from alembic.config import Config

SCRIPTS = Path(__file__).parent / "migrations"
# The tables after all migrations on SQLite: the output of `floe catalog ddl --dialect sqlite`.
NEW_SQLITE = SCRIPTS / "new_sqlite.sql"
# Not Alembic's default name, because Dagster may use that table in the same database.
VERSION_TABLE = "floe_revision"
DIALECTS = {"sqlite": "sqlite", "postgresql": "postgresql", "db2": "ibm_db_sa"}


class CatalogOutdatedError(FloeError):
    """The catalog's tables are too old for this version of floe."""

    def __init__(self, revision: str | None, needed: str) -> None:
        state = f"is at revision {revision}" if revision else "has no tables yet"
        super().__init__(
            f"The catalog {state}, but this floe needs revision {needed}. Run: floe catalog upgrade"
        )


class CatalogTooNewError(FloeError):
    """The catalog's tables are from a newer version of floe."""

    def __init__(self, revision: str, known: str) -> None:
        super().__init__(
            f"The catalog is at revision {revision}, but this floe supports only up to {known}. "
            "Install a newer version: pip install --upgrade floe"
        )


class UnknownDialectError(FloeError):
    """floe cannot print SQL in this dialect."""

    def __init__(self, dialect: str) -> None:
        super().__init__(f"Unknown SQL dialect '{dialect}'. Choose one of: {', '.join(DIALECTS)}")


def known_revisions() -> list[str]:
    """Return the revisions that this version of floe knows, oldest first."""
    # From the file names, because loading Alembic for this would slow down every command.
    return sorted(path.name.split("_")[0] for path in (SCRIPTS / "versions").glob("[0-9]*.py"))


def catalog_revision(catalog: Catalog) -> str | None:
    """Return a catalog's revision, or None if it has no tables yet."""
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
    revision, known = catalog_revision(catalog), known_revisions()
    if revision == known[-1]:
        return
    if revision is None or revision in known:
        raise CatalogOutdatedError(revision, known[-1])
    raise CatalogTooNewError(revision, known[-1])


def open_ready_catalog(url: str) -> Catalog:
    """Open a catalog and make sure that its tables are at the newest revision.

    An embedded catalog (SQLite) is created and upgraded automatically. On a server operators
    upgrade it, so a wrong revision is an error that names the command to run.
    """
    catalog = open_catalog(url)
    try:
        _ensure_newest(catalog)
    except BaseException:
        catalog.close()
        raise
    return catalog


def _ensure_newest(catalog: Catalog) -> None:
    try:
        check_catalog(catalog)
    except CatalogOutdatedError:
        if catalog.store.name != "sqlite":
            raise
        _upgrade_embedded(catalog)


def _upgrade_embedded(catalog: Catalog) -> None:
    """Create the tables of a new file from SQL, or upgrade existing tables by Alembic.

    Running the SQL is faster than loading Alembic. If two processes do this at the same time, the
    second one finds the tables of the first.
    """
    with catalog.engine.execution_options(floe_writing=True).begin() as connection:
        if not inspect(connection).get_table_names():
            _run_script(connection, NEW_SQLITE.read_text())
            return
    upgrade_catalog(catalog)


def _run_script(connection: Connection, script: str) -> None:
    # One by one, because the driver's executescript() commits before it starts.
    for statement in script.strip().split(";\n\n"):
        connection.exec_driver_sql(statement).close()


def upgrade_catalog(catalog: Catalog, revision: str = "head") -> None:
    """Run the migrations up to a revision in one transaction; concurrent callers wait."""
    from alembic import command

    with catalog.engine.execution_options(floe_writing=True).begin() as connection:
        catalog.store.lock_migrations(connection)
        config = alembic_config(connection.dialect.name, connection=connection)
        command.upgrade(config, revision)


def ddl(dialect: str) -> str:
    """Return the SQL that creates a catalog: `sqlite`, `postgresql` or `db2`."""
    from alembic import command

    if dialect not in DIALECTS:
        raise UnknownDialectError(dialect)
    output = StringIO()
    config = alembic_config(DIALECTS[dialect], output=output)
    command.upgrade(config, "head", sql=True)
    return output.getvalue()


def alembic_config(dialect: str, **attributes: Any) -> "Config":
    """Return Alembic's configuration for floe's migrations."""
    from alembic.config import Config

    if dialect == "ibm_db_sa":
        from floe.catalog.stores.db2 import register_with_alembic

        register_with_alembic()

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.set_main_option("path_separator", "os")
    config.attributes.update(attributes, dialect=dialect, version_table=VERSION_TABLE)
    return config
