"""Versions and schemas, as the API shows them."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from msgspec import Struct

from floe.api.schemas.fields import Reason
from floe.catalog.schemas import Column


class VersionItem(Struct):
    """A version, as a list shows it."""

    dataset_version_id: int
    version_tag: str
    business_date: date | None
    partition_key: str | None
    state: str
    row_count: int | None
    size_bytes: int | None
    schema_hash: str | None
    produced_by_run_id: str | None
    produced_at: datetime
    reason: str | None = None
    """Why it was rejected or retracted."""
    actor: str | None = None
    """Who rejected or retracted it."""


class VersionDetail(VersionItem, kw_only=True):
    """A version with all that is known of it."""

    dataset_id: int
    seq: int
    path: str | None
    checksum: str | None
    legal_hold: bool
    metadata_json: Any
    full_name: str = ""
    columns: Sequence[Column] = ()


class VersionPage(Struct):
    """A page of versions, the newest first."""

    items: Sequence[VersionItem]
    next: str | None


class Retraction(Struct, forbid_unknown_fields=True):
    """Why a version is taken back."""

    reason: Reason


class BuiltOnItem(Struct):
    """A version that was made from a retracted one, and who owns it."""

    dataset_version_id: int
    full_name: str
    version_tag: str
    state: str
    owner_team: str | None
    owner_email: str | None
    process_key: str | None
    run_uuid: str | None
    depth: int


class Retracted(Struct):
    """A version that was taken back, the one that is READY in its place, and what readers see."""

    retracted: str
    ready_again: str | None
    still_shown: bool
    built_on: Sequence[BuiltOnItem] = ()
    """What was made from it and can still be read, the nearest first."""


class SchemaItem(Struct):
    """A schema that a dataset was seen with."""

    schema_hash: str
    first_seen: datetime
    last_seen: datetime
    columns: Sequence[Column]


class SchemaPage(Struct):
    """A page of the schemas that a dataset was seen with, the newest first."""

    items: Sequence[SchemaItem]
    next: str | None


class Retyped(Struct):
    """A column whose type changed."""

    column: str
    before: str
    after: str


class SchemaChange(Struct):
    """How the schema of one version differs from that of another."""

    before: str
    after: str
    breaking: bool
    added: Sequence[str]
    removed: Sequence[str]
    retyped: Sequence[Retyped]
    tightened: Sequence[str]
    loosened: Sequence[str]
