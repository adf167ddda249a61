"""Datasets, as the API shows and takes them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from floe.api.schemas.fields import Category, Format, Name, Namespace, Prose, Words
from floe.api.schemas.versions import VersionItem
from floe.catalog.datasets import Tally
from floe.catalog.schemas import Column
from floe.catalog.search import DatasetHit, FacetCount


class ProcessLink(Struct):
    """A process next to a dataset."""

    process_id: int
    process_key: str
    name: str | None
    team: str | None


class DatasetDetail(Struct):
    """A dataset with its columns, its newest versions, and who writes and reads it."""

    dataset_id: int
    namespace: str
    name: str
    full_name: str
    description: str | None
    category: str | None
    default_format: str | None
    owner_team: str | None
    owner_email: str | None
    status: str
    timezone: str | None
    needs_validation: bool
    curated: bool
    schema_hash: str | None
    declaration_json: Any
    created_by: str | None
    created_at: datetime
    updated_at: datetime | None
    tags: Sequence[str] = ()
    sla: str | None = None
    columns: Sequence[Column] = ()
    versions: Sequence[VersionItem] = ()
    producers: Sequence[ProcessLink] = ()
    consumers: Sequence[ProcessLink] = ()


class DatasetPage(Struct):
    """A page of datasets. Total and facets are counted over all hits, on the first page only."""

    items: Sequence[DatasetHit]
    next: str | None
    total: int | None
    facets: Mapping[str, Sequence[FacetCount]]
    suggestions: Sequence[str]


class DatasetChange(Struct, forbid_unknown_fields=True):
    """What to change of a dataset; what is left out stays as it is."""

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
    """A moment in the life of a dataset or of a version."""

    dataset_event_id: int
    dataset_version_id: int | None
    event_type: str
    actor: str | None
    occurred_at: datetime
    detail_json: Any


class HistoryPage(Struct):
    """A page of a dataset's history, the newest first."""

    items: Sequence[HistoryItem]
    next: str | None


class TallyPage(Struct):
    """A page of values and how many datasets have each."""

    items: Sequence[Tally]
    next: str | None


class StaleItem(Struct):
    """A dataset whose newest version is older than its SLA allows, or that has none."""

    dataset_id: int
    full_name: str
    last_produced_at: datetime | None
    allowed_seconds: float


class SlaStatus(Struct):
    """A page of the datasets that break their SLA at a moment, by name."""

    at: datetime
    items: Sequence[StaleItem]
    next: str | None
