"""Drop indexes of the tables that events write most, and make others partial.

Column edges lose their surrogate key: they are most of the rows of an event, and maintaining four
indexes costs more than the rest of it. The rows are copied to a temporary table and back, because
not every store can drop a column. Columns that are nearly always NULL get partial indexes.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from floe.catalog.tables.types import Identifier

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NAME, HASH = sa.String(200), sa.String(64)
SOURCE, TARGET = ("source_dataset_id", "source_column"), ("target_dataset_id", "target_column")
KEY = (*TARGET, *SOURCE, "process_id", "kind", "lineage_hash")
COLUMNS = ", ".join(KEY)
OF_SOME = (
    ("idx_dataset_project", "dataset", "project_id"),
    ("idx_process_project", "process", "project_id"),
    ("idx_process_run_parent", "process_run", "parent_run_uuid"),
    ("idx_run_input_version", "run_input", "dataset_version_id"),
)


def upgrade() -> None:
    put_aside()
    op.create_table("column_edge", *columns(), sa.PrimaryKeyConstraint(*KEY))
    op.create_index("idx_column_edge_source", "column_edge", [*SOURCE])
    put_back()
    for name, table, column in of_some():
        not_null = sa.text(f"{column} IS NOT NULL")
        op.drop_index(name, table)
        op.create_index(name, table, [column], sqlite_where=not_null, postgresql_where=not_null)


def downgrade() -> None:
    for name, table, column in of_some():
        op.drop_index(name, table)
        op.create_index(name, table, [column])
    put_aside()
    op.create_table(
        "column_edge",
        sa.Column("column_edge_id", Identifier, sa.Identity(always=True), primary_key=True),
        *columns(),
        sa.UniqueConstraint(*KEY, name="uq_column_edge"),
    )
    op.create_index("idx_column_edge_source", "column_edge", [*SOURCE])
    op.create_index("idx_column_edge_lineage", "column_edge", ["process_id", TARGET[0]])
    put_back()


def of_some() -> tuple[tuple[str, str, str], ...]:
    """Return the partial indexes; DB2 does not support them and keeps the full ones."""
    return OF_SOME if op.get_context().dialect.name in ("sqlite", "postgresql") else ()


def columns() -> list[sa.Column[Any]]:
    kinds: tuple[Any, ...] = (Identifier, NAME, Identifier, NAME, Identifier, sa.String(20), HASH)
    return [
        sa.Column(name, kind, nullable=False, autoincrement=False)
        for name, kind in zip(KEY, kinds, strict=True)
    ]


def put_aside() -> None:
    op.create_table("column_edge_aside", *columns())
    op.execute(f"INSERT INTO column_edge_aside ({COLUMNS}) SELECT {COLUMNS} FROM column_edge")  # noqa: S608
    op.drop_table("column_edge")


def put_back() -> None:
    op.execute(f"INSERT INTO column_edge ({COLUMNS}) SELECT {COLUMNS} FROM column_edge_aside")  # noqa: S608
    op.drop_table("column_edge_aside")
