"""Mark datasets that a person has curated.

Until now events overwrote the edits of stewards. Datasets that were curated before this column
existed are recognized by their registration request or by the audit log.
"""

import sqlalchemy as sa
from alembic import op

from floe.catalog.tables.types import YesNo

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A server default, because the event recorder inserts only the columns that it fills.
    op.add_column("dataset", sa.Column("curated", YesNo(), server_default="N", nullable=False))
    op.execute(
        "UPDATE dataset SET curated = 'Y' "
        "WHERE dataset_id IN (SELECT dataset_id FROM dataset_registration) "
        "OR full_name IN (SELECT object_key FROM audit_log WHERE action = 'dataset.update')"
    )


def downgrade() -> None:
    op.drop_column("dataset", "curated")
