"""Who may, who asked, who did; and who holds what for a moment."""

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from floe.catalog.tables.base import FullName, LongName, Moment, Name, RowId, Short, Table
from floe.catalog.types import Identifier, JsonText


class DatasetRegistration(Table):
    """A request to register a dataset, which a steward approves or rejects."""

    __tablename__ = "dataset_registration"

    reg_id: Mapped[RowId]
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.dataset_id"))
    submitted_by: Mapped[Name]
    submitted_at: Mapped[Moment]
    status: Mapped[Short]
    reviewer: Mapped[Name | None]
    reviewed_at: Mapped[Moment | None]
    review_comment: Mapped[str | None] = mapped_column(Text)
    request_json: Mapped[Any | None] = mapped_column(JsonText)

    __table_args__ = (
        Index("idx_registration_status", "status", "submitted_at"),
        Index("idx_registration_dataset", "dataset_id"),
    )


class DriftClaim(Table):
    """What events claim against what is declared, until a steward accepts or dismisses it."""

    __tablename__ = "drift_claim"

    claim_id: Mapped[RowId]
    kind: Mapped[Short]
    # SAME_DATASET: two datasets, the smaller number first. FOREIGN_VERSION: a dataset and the
    # process that claims to write it. Neither has a foreign key, as in the tables of lineage.
    dataset_id: Mapped[int] = mapped_column(Identifier)
    subject_id: Mapped[int] = mapped_column(Identifier)
    status: Mapped[Short]
    first_seen: Mapped[Moment]
    last_seen: Mapped[Moment]
    detail_json: Mapped[Any | None] = mapped_column(JsonText)
    decided_by: Mapped[Name | None]
    decided_at: Mapped[Moment | None]
    decision_comment: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        UniqueConstraint("kind", "dataset_id", "subject_id", name="unq_drift_claim"),
        Index("idx_drift_claim_status", "status", "claim_id"),
        Index("idx_drift_claim_subject", "subject_id"),
    )


class DatasetJoin(Table):
    """Two datasets that became one: what was moved, so that a split can move it back."""

    __tablename__ = "dataset_join"

    join_id: Mapped[RowId]
    kept_id: Mapped[int] = mapped_column(Identifier)
    # The dataset that went: its number and name then, and the number it has since a split.
    gone_id: Mapped[int] = mapped_column(Identifier)
    gone_name: Mapped[FullName]
    joined_at: Mapped[Moment]
    joined_by: Mapped[Name]
    moved_json: Mapped[Any] = mapped_column(JsonText)
    split_id: Mapped[int | None] = mapped_column(Identifier)
    split_at: Mapped[Moment | None]
    split_by: Mapped[Name | None]

    __table_args__ = (
        Index("idx_dataset_join_kept", "kept_id"),
        Index("idx_dataset_join_name", "gone_name"),
        Index("idx_dataset_join_split", "split_id"),
    )


class Principal(Table):
    """A person or a program that may act on the catalog."""

    __tablename__ = "principal"

    principal_id: Mapped[RowId]
    name: Mapped[Name]
    kind: Mapped[Short]
    email: Mapped[Name | None]
    team: Mapped[Name | None]
    created_at: Mapped[Moment]
    disabled_at: Mapped[Moment | None]

    __table_args__ = (UniqueConstraint("name"),)


class AccessToken(Table):
    """A secret by which a principal is known. Only its hash is kept."""

    __tablename__ = "access_token"

    token_id: Mapped[RowId]
    principal_id: Mapped[int] = mapped_column(ForeignKey("principal.principal_id"))
    token_hash: Mapped[str] = mapped_column(String(64))
    token_start: Mapped[Short]
    scopes: Mapped[LongName]
    created_at: Mapped[Moment]
    expires_at: Mapped[Moment | None]
    last_used_at: Mapped[Moment | None]
    revoked_at: Mapped[Moment | None]

    __table_args__ = (
        UniqueConstraint("token_hash"),
        Index("idx_access_token_principal", "principal_id"),
    )


class LoginSession(Table):
    """A login of a person in a browser. Only the hash of its secret is kept.

    Until somebody opens the login link, the secret is that of the link. From then on it is that of
    the cookie, so a link works once.
    """

    __tablename__ = "session"

    session_id: Mapped[RowId]
    principal_id: Mapped[int] = mapped_column(ForeignKey("principal.principal_id"))
    token_id: Mapped[int | None] = mapped_column(ForeignKey("access_token.token_id"))
    secret_hash: Mapped[str] = mapped_column(String(64))
    scopes: Mapped[LongName]
    browser: Mapped[Name | None]
    created_at: Mapped[Moment]
    opened_at: Mapped[Moment | None]
    expires_at: Mapped[Moment]
    last_used_at: Mapped[Moment | None]
    revoked_at: Mapped[Moment | None]

    __table_args__ = (
        UniqueConstraint("secret_hash"),
        Index("idx_session_principal", "principal_id"),
        Index("idx_session_token", "token_id"),
        {"quote": False},
    )


class RoleGrant(Table):
    """A role that a principal has, everywhere (empty scope) or within one scope."""

    __tablename__ = "role_grant"

    principal_id: Mapped[int] = mapped_column(
        ForeignKey("principal.principal_id"), primary_key=True
    )
    role: Mapped[str] = mapped_column(String(30), primary_key=True)
    scope: Mapped[str] = mapped_column("scope", String(300), primary_key=True, quote=False)
    granted_by: Mapped[Name | None]
    granted_at: Mapped[Moment]


class AuditLog(Table):
    """Who changed what, with the values before and after."""

    __tablename__ = "audit_log"

    audit_id: Mapped[RowId]
    occurred_at: Mapped[Moment]
    actor: Mapped[Name]
    action: Mapped[str] = mapped_column(String(100))
    object_type: Mapped[str] = mapped_column(String(50))
    object_key: Mapped[str] = mapped_column(String(600))
    before_json: Mapped[Any | None] = mapped_column(JsonText)
    after_json: Mapped[Any | None] = mapped_column(JsonText)
    reason: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        Index("idx_audit_object", "object_type", "object_key", "occurred_at"),
        Index("idx_audit_time", "occurred_at"),
    )


class Lease(Table):
    """Something that one holder at a time may do, until the lease ends by itself."""

    __tablename__ = "lease"

    name: Mapped[str] = mapped_column(String(300), primary_key=True)
    holder: Mapped[LongName]
    # Grows with every new holder: what an old holder still writes can be told apart and refused.
    fence: Mapped[int] = mapped_column(BigInteger)
    acquired_at: Mapped[Moment]
    expires_at: Mapped[Moment]
