"""Access, requests, drift decisions, audit and leases."""

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from floe.catalog.tables.table_base import FullName, LongName, Name, RowId, Short, Table, Timestamp
from floe.catalog.tables.types import Identifier, JsonText


class DatasetRegistration(Table):
    """A request to register a dataset, which a steward approves or rejects."""

    __tablename__ = "dataset_registration"

    reg_id: Mapped[RowId]
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.dataset_id"))
    submitted_by: Mapped[Name]
    submitted_at: Mapped[Timestamp]
    status: Mapped[Short]
    reviewer: Mapped[Name | None]
    reviewed_at: Mapped[Timestamp | None]
    review_comment: Mapped[str | None] = mapped_column(Text)
    request_json: Mapped[Any | None] = mapped_column(JsonText)

    __table_args__ = (
        Index("idx_registration_status", "status", "submitted_at"),
        Index("idx_registration_dataset", "dataset_id"),
    )


class DriftClaim(Table):
    """A claim of events that contradicts declarations, until a steward decides on it."""

    __tablename__ = "drift_claim"

    claim_id: Mapped[RowId]
    kind: Mapped[Short]
    # SAME_DATASET: two datasets, the smaller id first. FOREIGN_VERSION: a dataset and the process
    # that claims to write it. Without foreign keys, like the lineage tables.
    dataset_id: Mapped[int] = mapped_column(Identifier)
    subject_id: Mapped[int] = mapped_column(Identifier)
    status: Mapped[Short]
    first_seen: Mapped[Timestamp]
    last_seen: Mapped[Timestamp]
    detail_json: Mapped[Any | None] = mapped_column(JsonText)
    decided_by: Mapped[Name | None]
    decided_at: Mapped[Timestamp | None]
    decision_comment: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        UniqueConstraint("kind", "dataset_id", "subject_id", name="unq_drift_claim"),
        Index("idx_drift_claim_status", "status", "claim_id"),
        Index("idx_drift_claim_subject", "subject_id"),
    )


class DatasetJoin(Table):
    """A join of two datasets: what was moved, so that a split can move it back."""

    __tablename__ = "dataset_join"

    join_id: Mapped[RowId]
    kept_id: Mapped[int] = mapped_column(Identifier)
    # The joined dataset: its id and name at that time, and its id after a split.
    gone_id: Mapped[int] = mapped_column(Identifier)
    gone_name: Mapped[FullName]
    joined_at: Mapped[Timestamp]
    joined_by: Mapped[Name]
    moved_json: Mapped[Any] = mapped_column(JsonText)
    split_id: Mapped[int | None] = mapped_column(Identifier)
    split_at: Mapped[Timestamp | None]
    split_by: Mapped[Name | None]

    __table_args__ = (
        Index("idx_dataset_join_kept", "kept_id"),
        Index("idx_dataset_join_name", "gone_name"),
        Index("idx_dataset_join_split", "split_id"),
    )


class Principal(Table):
    """A person or a program with access to the catalog."""

    __tablename__ = "principal"

    principal_id: Mapped[RowId]
    name: Mapped[Name]
    kind: Mapped[Short]
    email: Mapped[Name | None]
    team: Mapped[Name | None]
    created_at: Mapped[Timestamp]
    disabled_at: Mapped[Timestamp | None]

    __table_args__ = (UniqueConstraint("name"),)


class AccessToken(Table):
    """A secret that authenticates a principal. Only its hash is stored."""

    __tablename__ = "access_token"

    token_id: Mapped[RowId]
    principal_id: Mapped[int] = mapped_column(ForeignKey("principal.principal_id"))
    token_hash: Mapped[str] = mapped_column(String(64))
    token_start: Mapped[Short]
    scopes: Mapped[LongName]
    created_at: Mapped[Timestamp]
    expires_at: Mapped[Timestamp | None]
    last_used_at: Mapped[Timestamp | None]
    revoked_at: Mapped[Timestamp | None]

    __table_args__ = (
        UniqueConstraint("token_hash"),
        Index("idx_access_token_principal", "principal_id"),
    )


class LoginSession(Table):
    """A person's login in a browser. Only the hash of its secret is stored.

    The secret is that of the login link until somebody opens the link. From then on it is that of
    the cookie, so a link works once.
    """

    __tablename__ = "session"

    session_id: Mapped[RowId]
    principal_id: Mapped[int] = mapped_column(ForeignKey("principal.principal_id"))
    token_id: Mapped[int | None] = mapped_column(ForeignKey("access_token.token_id"))
    secret_hash: Mapped[str] = mapped_column(String(64))
    scopes: Mapped[LongName]
    browser: Mapped[Name | None]
    created_at: Mapped[Timestamp]
    opened_at: Mapped[Timestamp | None]
    expires_at: Mapped[Timestamp]
    last_used_at: Mapped[Timestamp | None]
    revoked_at: Mapped[Timestamp | None]

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
    granted_at: Mapped[Timestamp]


class AuditLog(Table):
    """Who changed what, with the values before and after."""

    __tablename__ = "audit_log"

    audit_id: Mapped[RowId]
    occurred_at: Mapped[Timestamp]
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
    """Exclusive access to something for one holder at a time, until it expires."""

    __tablename__ = "lease"

    name: Mapped[str] = mapped_column(String(300), primary_key=True)
    holder: Mapped[LongName]
    # Incremented with every new holder, so that late writes of an old holder can be rejected.
    fence: Mapped[int] = mapped_column(BigInteger)
    acquired_at: Mapped[Timestamp]
    expires_at: Mapped[Timestamp]
