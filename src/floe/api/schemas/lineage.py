"""Lineage and impact, as the API shows them."""

from collections.abc import Sequence

from msgspec import Struct

from floe.catalog.drift import Drift
from floe.catalog.impact import DepthCount, TeamImpact


class GraphNode(Struct, gc=False):
    """A dataset or a process that a walk reached."""

    type: str
    id: int
    name: str
    key: str
    status: str
    team: str | None
    technology: str | None
    depth: int
    more: bool


class GraphEdge(Struct, gc=False):
    """An edge that a walk took, in the direction of the data."""

    source_type: str
    source_id: int
    target_type: str
    target_id: int
    role: str
    known_by: tuple[str, ...]
    via: str | None


class LineageGraph(Struct):
    """What a walk found: the start first, then the others by distance."""

    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]
    truncated: bool


class ColumnItem(Struct, gc=False):
    """A column that a walk reached."""

    dataset_id: int
    dataset: str
    column: str
    depth: int
    more: bool


class ColumnEdgeItem(Struct, gc=False):
    """A column that feeds another, and by which process."""

    source_dataset_id: int
    source_column: str
    target_dataset_id: int
    target_column: str
    kind: str
    process: str


class ColumnGraph(Struct):
    """What a walk over columns found."""

    columns: Sequence[ColumnItem]
    edges: Sequence[ColumnEdgeItem]
    truncated: bool


class SlaAtRisk(Struct):
    """A promise in danger, and what it is about."""

    sla_id: int
    name: str
    due: str | None
    zone: str | None
    window_sec: int | None
    type: str
    id: int
    key: str


class ImpactSummary(Struct):
    """Everything downstream of a dataset, the nearest first, and whose it is."""

    datasets: Sequence[GraphNode]
    processes: Sequence[GraphNode]
    by_depth: Sequence[DepthCount]
    teams: Sequence[TeamImpact]
    slas: Sequence[SlaAtRisk]
    truncated: bool


class DriftPage(Struct):
    """A page of edges on which declaration and observation disagree."""

    items: Sequence[Drift]
    next: str | None
