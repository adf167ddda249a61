"""Schemas of lineage and impact."""

from collections.abc import Sequence

from msgspec import Struct

from floe.catalog.column_lineage import ColumnNode
from floe.catalog.drift import Drift
from floe.catalog.impact import DepthCount, TeamImpact
from floe.catalog.lineage import LineageNode


class GraphEdge(Struct, gc=False):
    """An edge in a lineage graph, in the direction of the data flow."""

    source_type: str
    source_id: int
    target_type: str
    target_id: int
    role: str
    known_by: tuple[str, ...]
    via: str | None


class LineageGraph(Struct):
    """A lineage graph: the start node first, then the others by distance."""

    nodes: Sequence[LineageNode]
    edges: Sequence[GraphEdge]
    truncated: bool


class ColumnEdgeItem(Struct, gc=False):
    """A column that another is computed from, and the process."""

    source_dataset_id: int
    source_column: str
    target_dataset_id: int
    target_column: str
    kind: str
    process: str


class ColumnGraph(Struct):
    """A column lineage graph."""

    columns: Sequence[ColumnNode]
    edges: Sequence[ColumnEdgeItem]
    truncated: bool


class SlaAtRisk(Struct):
    """An SLA at risk, and its dataset or process."""

    sla_id: int
    name: str
    due: str | None
    zone: str | None
    window_sec: int | None
    type: str
    id: int
    key: str


class ImpactSummary(Struct):
    """Everything downstream of a dataset, nearest first, and the teams that own it."""

    datasets: Sequence[LineageNode]
    processes: Sequence[LineageNode]
    by_depth: Sequence[DepthCount]
    teams: Sequence[TeamImpact]
    slas: Sequence[SlaAtRisk]
    truncated: bool


class DriftPage(Struct):
    """A page of edges where declaration and observation differ."""

    items: Sequence[Drift]
    next: str | None
