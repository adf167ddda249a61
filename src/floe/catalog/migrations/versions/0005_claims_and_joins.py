"""Mark datasets and runs of floe itself; add tables for drift claims and joins.

Until now an event from outside could change versions and runs that floe had written, and a join of
two datasets could not be undone. floe's earlier rows are recognized by their process.
"""

import sqlalchemy as sa
from alembic import op

from floe.catalog.tables.types import Identifier, JsonText, UtcTime, YesNo

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

NAME, SHORT, FULL_NAME = sa.String(200), sa.String(20), sa.String(600)
OWN_PROCESSES = (
    "SELECT process_id FROM process "
    "WHERE process_key LIKE 'floe/%' OR process_key LIKE 'dbt/%' OR process_key LIKE 'dagster/%'"
)


def upgrade() -> None:
    _mark_own()
    op.add_column(
        "change_head",
        sa.Column("names_epoch", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
    )
    op.create_table(
        "drift_claim",
        sa.Column("claim_id", Identifier, sa.Identity(always=True), primary_key=True),
        sa.Column("kind", SHORT, nullable=False),
        sa.Column("dataset_id", Identifier, nullable=False),
        sa.Column("subject_id", Identifier, nullable=False),
        sa.Column("status", SHORT, nullable=False),
        sa.Column("first_seen", UtcTime(), nullable=False),
        sa.Column("last_seen", UtcTime(), nullable=False),
        sa.Column("detail_json", JsonText(), nullable=True),
        sa.Column("decided_by", NAME, nullable=True),
        sa.Column("decided_at", UtcTime(), nullable=True),
        sa.Column("decision_comment", sa.Text(), nullable=True),
        sa.UniqueConstraint("kind", "dataset_id", "subject_id", name="unq_drift_claim"),
    )
    op.create_index("idx_drift_claim_status", "drift_claim", ["status", "claim_id"])
    op.create_index("idx_drift_claim_subject", "drift_claim", ["subject_id"])
    op.create_table(
        "dataset_join",
        sa.Column("join_id", Identifier, sa.Identity(always=True), primary_key=True),
        sa.Column("kept_id", Identifier, nullable=False),
        sa.Column("gone_id", Identifier, nullable=False),
        sa.Column("gone_name", FULL_NAME, nullable=False),
        sa.Column("joined_at", UtcTime(), nullable=False),
        sa.Column("joined_by", NAME, nullable=False),
        sa.Column("moved_json", JsonText(), nullable=False),
        sa.Column("split_id", Identifier, nullable=True),
        sa.Column("split_at", UtcTime(), nullable=True),
        sa.Column("split_by", NAME, nullable=True),
    )
    op.create_index("idx_dataset_join_kept", "dataset_join", ["kept_id"])
    op.create_index("idx_dataset_join_name", "dataset_join", ["gone_name"])
    op.create_index("idx_dataset_join_split", "dataset_join", ["split_id"])


def _mark_own() -> None:
    # Server defaults, because the event recorder inserts only the columns that it fills.
    for table, column in (("dataset", "floe_writes"), ("process_run", "own")):
        op.add_column(table, sa.Column(column, YesNo(), server_default="N", nullable=False))
    op.execute(f"UPDATE process_run SET own = 'Y' WHERE process_id IN ({OWN_PROCESSES})")  # noqa: S608
    op.execute(
        "UPDATE dataset SET floe_writes = 'Y' WHERE dataset_id IN ("  # noqa: S608
        "SELECT target_id FROM lineage_edge WHERE source_type = 'PROCESS' "
        "AND target_type = 'DATASET' AND edge_role = 'PRODUCES' AND ended_at IS NULL "
        f"AND source_id IN ({OWN_PROCESSES}))"
    )


def downgrade() -> None:
    op.drop_table("dataset_join")
    op.drop_table("drift_claim")
    op.drop_column("change_head", "names_epoch")
    op.drop_column("process_run", "own")
    op.drop_column("dataset", "floe_writes")
