"""Add login sessions, which expire and can be revoked."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.sql import quoted_name

from floe.catalog.tables.types import Identifier, UtcTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# ibm_db_sa would quote the name, and on DB2 that would be a different, lower-case table.
SESSION = quoted_name("session", quote=False)


def upgrade() -> None:
    op.create_table(
        SESSION,
        sa.Column("session_id", Identifier, sa.Identity(always=True), nullable=False),
        sa.Column("principal_id", Identifier, nullable=False),
        sa.Column("token_id", Identifier, nullable=True),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("scopes", sa.String(300), nullable=False),
        sa.Column("browser", sa.String(200), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("opened_at", UtcTime(), nullable=True),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.Column("last_used_at", UtcTime(), nullable=True),
        sa.Column("revoked_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["principal_id"], ["principal.principal_id"], name="fk_session_principal_id"
        ),
        sa.ForeignKeyConstraint(
            ["token_id"], ["access_token.token_id"], name="fk_session_token_id"
        ),
        sa.PrimaryKeyConstraint("session_id", name="pk_session"),
        sa.UniqueConstraint("secret_hash", name="uq_session_secret_hash"),
    )
    op.create_index("idx_session_principal", SESSION, ["principal_id"])
    op.create_index("idx_session_token", SESSION, ["token_id"])


def downgrade() -> None:
    op.drop_table(SESSION)
