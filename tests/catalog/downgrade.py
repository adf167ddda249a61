"""Undo migrations: floe itself only upgrades a catalog."""

from alembic import command

from floe.catalog.database import Catalog
from floe.catalog.migrate import alembic_config


def downgrade_catalog(catalog: Catalog, revision: str) -> None:
    """Undo the migrations down to a revision, or all of them with `base`."""
    with catalog.engine.execution_options(floe_writing=True).begin() as connection:
        catalog.store.lock_migrations(connection)
        config = alembic_config(connection.dialect.name, connection=connection)
        command.downgrade(config, revision)
