"""Datasets know whether somebody has said by hand what they are.

Until now events changed what a steward had set. A dataset that somebody asked for or changed by
the API before there was this column is known by the request, or by the audit log.
"""

import sqlalchemy as sa
from alembic import op

from floe.catalog.types import YesNo

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The default is the database's, because events name only the columns that they fill.
    op.add_column("dataset", sa.Column("curated", YesNo(), server_default="N", nullable=False))
    op.execute(
        "UPDATE dataset SET curated = 'Y' "
        "WHERE dataset_id IN (SELECT dataset_id FROM dataset_registration) "
        "OR full_name IN (SELECT object_key FROM audit_log WHERE action = 'dataset.update')"
    )


def downgrade() -> None:
    op.drop_column("dataset", "curated")
