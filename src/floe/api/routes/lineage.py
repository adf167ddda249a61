"""Routes of lineage: of datasets, processes and columns, and impact."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.deps import (
    Depth,
    FullName,
    RowId,
    Timestamp,
    services_of,
)
from floe.api.openapi import route_docs
from floe.api.responses import reply
from floe.api.routes.processes import ProcessKey
from floe.api.schemas.lineage import (
    ColumnEdgeItem,
    ColumnGraph,
    GraphEdge,
    ImpactSummary,
    LineageGraph,
    SlaAtRisk,
)
from floe.catalog import find_dataset, find_process
from floe.catalog.column_lineage import Side, walk_columns
from floe.catalog.datasets import get_dataset
from floe.catalog.edges import DATASET, PROCESS, Node
from floe.catalog.impact import WHOLE_GRAPH, SlaImpact, summarize_impact
from floe.catalog.lineage import DEFAULT_DEPTH, MAX_NODES, Direction, Kind, Lineage, walk_lineage
from floe.catalog.processes import get_process

Shown = Annotated[Kind, Query(description="Kinds of nodes to return.")]
Most = Annotated[int, Query(ge=1, le=MAX_NODES, description="Maximum number of nodes.")]

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["lineage"])


@router.get(
    "/dataset/lineage",
    operation_id="find_dataset_lineage",
    summary="Get the lineage of a dataset by name",
    **route_docs(LineageGraph, 404, 409),
)
def find_dataset_lineage(
    request: Request,
    full_name: FullName,
    *,
    direction: Direction = "downstream",
    depth: Depth = DEFAULT_DEPTH,
    show: Shown = "both",
    as_of: Timestamp = None,
    most: Most = MAX_NODES,
) -> Response:
    """Where its data comes from (upstream), or what depends on it (downstream)."""
    with services_of(request).sessions.reading() as session:
        start = Node(DATASET, find_dataset(session, full_name).dataset_id)
        return _graph(
            walk_lineage(session, start, direction, depth, kind=show, as_of=as_of, max_nodes=most)
        )


@router.get(
    "/dataset/{dataset_id}/lineage",
    operation_id="get_dataset_lineage",
    summary="Get the lineage of a dataset",
    **route_docs(LineageGraph, 404),
)
def get_dataset_lineage(
    request: Request,
    dataset_id: RowId,
    *,
    direction: Direction = "downstream",
    depth: Depth = DEFAULT_DEPTH,
    show: Shown = "both",
    as_of: Timestamp = None,
    most: Most = MAX_NODES,
) -> Response:
    """Where its data comes from (upstream), or what depends on it (downstream)."""
    with services_of(request).sessions.reading() as session:
        start = Node(DATASET, get_dataset(session, dataset_id).dataset_id)
        return _graph(
            walk_lineage(session, start, direction, depth, kind=show, as_of=as_of, max_nodes=most)
        )


@router.get(
    "/process/lineage",
    operation_id="find_process_lineage",
    summary="Get the lineage of a process by key",
    **route_docs(LineageGraph, 404, 409),
)
def find_process_lineage(
    request: Request,
    process_key: ProcessKey,
    *,
    direction: Direction = "downstream",
    depth: Depth = DEFAULT_DEPTH,
    show: Shown = "both",
    as_of: Timestamp = None,
    most: Most = MAX_NODES,
) -> Response:
    """What it depends on (upstream), or what depends on it (downstream)."""
    with services_of(request).sessions.reading() as session:
        start = Node(PROCESS, find_process(session, process_key).process_id)
        return _graph(
            walk_lineage(session, start, direction, depth, kind=show, as_of=as_of, max_nodes=most)
        )


@router.get(
    "/process/{process_id}/lineage",
    operation_id="get_process_lineage",
    summary="Get the lineage of a process",
    **route_docs(LineageGraph, 404),
)
def get_process_lineage(
    request: Request,
    process_id: RowId,
    *,
    direction: Direction = "downstream",
    depth: Depth = DEFAULT_DEPTH,
    show: Shown = "both",
    as_of: Timestamp = None,
    most: Most = MAX_NODES,
) -> Response:
    """What it depends on (upstream), or what depends on it (downstream)."""
    with services_of(request).sessions.reading() as session:
        start = Node(PROCESS, get_process(session, process_id).process_id)
        return _graph(
            walk_lineage(session, start, direction, depth, kind=show, as_of=as_of, max_nodes=most)
        )


def _graph(lineage: Lineage) -> Response:
    return reply(
        LineageGraph(
            lineage.nodes,
            [
                GraphEdge(source[0], source[1], target[0], target[1], role, known_by, via)
                for source, target, role, known_by, via in lineage.edges
            ],
            lineage.truncated,
        )
    )


@router.get(
    "/dataset/{dataset_id}/columns/lineage",
    operation_id="get_column_lineage",
    summary="Get column lineage",
    **route_docs(ColumnGraph, 404),
)
def get_column_lineage(
    request: Request,
    dataset_id: RowId,
    *,
    column: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    direction: Side = "upstream",
    depth: Depth = DEFAULT_DEPTH,
) -> Response:
    """The columns upstream or downstream of a column; by default, of all columns."""
    with services_of(request).sessions.reading() as session:
        dataset = get_dataset(session, dataset_id)
        lineage = walk_columns(session, dataset, column, direction, depth)
    return reply(
        ColumnGraph(
            lineage.columns,
            [
                ColumnEdgeItem(*link.source, *link.target, link.kind, link.process)
                for link in lineage.edges
            ],
            lineage.truncated,
        )
    )


@router.get(
    "/dataset/{dataset_id}/impact",
    operation_id="get_impact",
    summary="Get the impact of a late or wrong dataset",
    **route_docs(ImpactSummary, 404),
)
def get_impact(
    request: Request,
    dataset_id: RowId,
    depth: Annotated[int, Query(ge=1, le=WHOLE_GRAPH)] = WHOLE_GRAPH,
) -> Response:
    """Everything downstream, the teams that own it, and the SLAs at risk."""
    with services_of(request).sessions.reading() as session:
        get_dataset(session, dataset_id)
        impact = summarize_impact(session, dataset_id, depth)
    return reply(
        ImpactSummary(
            impact.datasets,
            impact.processes,
            impact.by_depth,
            impact.teams,
            [_at_risk(sla) for sla in impact.slas],
            impact.truncated,
        )
    )


def _at_risk(sla: SlaImpact) -> SlaAtRisk:
    node, key = sla.node, sla.key
    return SlaAtRisk(
        sla.sla_id, sla.name, sla.due, sla.zone, sla.window_sec, node.type, node.id, key
    )
