"""Schemas of datasets and their versions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from floe.api.schemas import Category, Format, Name, Namespace, Prose, Reason, Words
from floe.catalog.datasets import Tally
from floe.catalog.impact import DerivedVersion
from floe.catalog.schemas import Column
from floe.catalog.search import DatasetHit, FacetCount
from floe.catalog.version_queries import VersionRow


class VersionDetail(VersionRow, kw_only=True):
    """A version with all details."""

    dataset_id: int
    seq: int
    path: str | None
    checksum: str | None
    legal_hold: bool
    metadata_json: Any
    full_name: str = ""
    columns: Sequence[Column] = ()


class VersionPage(Struct):
    """A page of versions, newest first."""

    items: Sequence[VersionRow]
    next: str | None


class Retraction(Struct, forbid_unknown_fields=True):
    """Why a version is retracted."""

    reason: Reason


class Retracted(Struct):
    """A retracted version, the version that is READY instead, and affected versions."""

    retracted: str
    ready_again: str | None
    still_shown: bool
    built_on: Sequence[DerivedVersion] = ()
    """Readable versions computed from it, nearest first."""


class SchemaItem(Struct):
    """An observed schema of a dataset."""

    schema_hash: str
    first_seen: datetime
    last_seen: datetime
    columns: Sequence[Column]


class SchemaPage(Struct):
    """A page of observed schemas of a dataset, newest first."""

    items: Sequence[SchemaItem]
    next: str | None


class Retyped(Struct):
    """A column whose type changed."""

    column: str
    before: str
    after: str


class SchemaChange(Struct):
    """The differences between the schemas of two versions."""

    before: str
    after: str
    breaking: bool
    added: Sequence[str]
    removed: Sequence[str]
    retyped: Sequence[Retyped]
    tightened: Sequence[str]
    loosened: Sequence[str]


class DatasetPage(Struct):
    """A page of datasets. Total and facets cover all matches, on the first page only."""

    items: Sequence[DatasetHit]
    next: str | None
    total: int | None
    facets: Mapping[str, Sequence[FacetCount]]
    suggestions: Sequence[str]


class DatasetChange(Struct, forbid_unknown_fields=True):
    """Changes to a dataset; omitted fields are not changed."""

    description: Prose | UnsetType | None = UNSET
    category: Category | UnsetType | None = UNSET
    owner_team: Words | UnsetType | None = UNSET
    owner_email: Words | UnsetType | None = UNSET
    tags: list[Name] | UnsetType = UNSET


class DatasetRequest(Struct, forbid_unknown_fields=True):
    """A request to register a dataset."""

    namespace: Namespace
    name: Name
    description: Prose | None = None
    category: Category | None = None
    default_format: Format | None = None
    owner_team: Words | None = None
    owner_email: Words | None = None
    comment: Prose | None = None


class HistoryItem(Struct):
    """An event in the history of a dataset or version."""

    dataset_event_id: int
    dataset_version_id: int | None
    event_type: str
    actor: str | None
    occurred_at: datetime
    detail_json: Any


class HistoryPage(Struct):
    """A page of a dataset's history, newest first."""

    items: Sequence[HistoryItem]
    next: str | None


class TallyPage(Struct):
    """A page of values with their number of datasets."""

    items: Sequence[Tally]
    next: str | None


class StaleItem(Struct):
    """A dataset whose newest version is older than its SLA allows, or missing."""

    dataset_id: int
    full_name: str
    last_produced_at: datetime | None
    allowed_seconds: float


class SlaStatus(Struct):
    """A page of datasets in breach of their SLA at a point in time, by name."""

    at: datetime
    items: Sequence[StaleItem]
    next: str | None
