"""Alembic's entry: run the migrations on the connection it is given, or write them as SQL."""

from alembic import context

from floe.catalog.tables import Table

given = context.config.attributes
context.configure(
    connection=given.get("connection"),
    dialect_name=given["dialect"],
    output_buffer=given.get("output"),
    version_table=given["version_table"],
    target_metadata=Table.metadata,
    literal_binds=context.is_offline_mode(),
)
with context.begin_transaction():
    context.run_migrations()
