"""Alembic's entry point: run migrations on a connection, or print their SQL."""

from alembic import context

from floe.catalog.tables import Table

attributes = context.config.attributes
context.configure(
    connection=attributes.get("connection"),
    dialect_name=attributes["dialect"],
    output_buffer=attributes.get("output"),
    version_table=attributes["version_table"],
    target_metadata=Table.metadata,
    literal_binds=context.is_offline_mode(),
)
with context.begin_transaction():
    context.run_migrations()
