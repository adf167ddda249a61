"""Routes of checks: definitions, results, and datasets in breach of their SLA."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from floe import clock
from floe.api.access import GuardedRoute
from floe.api.deps import (
    DEFAULT_LIMIT,
    Cursor,
    Limit,
    OptionalId,
    RowId,
    cut_page,
    read_id,
    read_text,
    services_of,
)
from floe.api.openapi import route_docs
from floe.api.responses import reply
from floe.api.schemas import to_schema
from floe.api.schemas.datasets import SlaStatus, StaleItem
from floe.api.schemas.governance import CheckItem, CheckPage, ResultItem, ResultPage
from floe.catalog import list_checks as checks_of
from floe.catalog import list_stale_datasets
from floe.catalog.checks import page_results
from floe.catalog.datasets import get_dataset

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["quality"])


@router.get(
    "/dataset/{dataset_id}/checks",
    operation_id="list_checks",
    summary="List the checks of a dataset",
    **route_docs(CheckPage, 400, 404),
)
def list_checks(
    request: Request, dataset_id: RowId, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """Active checks, by name."""
    with services_of(request).sessions.reading() as session:
        get_dataset(session, dataset_id)
        rows = checks_of(session, dataset_id, after=read_text(cursor) or "", limit=limit + 1)
        page, after = cut_page(rows, limit, lambda row: row.name)
        return reply(CheckPage([to_schema(row, CheckItem) for row in page], after))


@router.get(
    "/dataset/{dataset_id}/check-results",
    operation_id="list_check_results",
    summary="List check results of a dataset",
    **route_docs(ResultPage, 400, 404),
)
def list_check_results(
    request: Request,
    dataset_id: RowId,
    *,
    version_id: OptionalId = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Newest first; of one version, or of all."""
    with services_of(request).sessions.reading() as session:
        get_dataset(session, dataset_id)
        rows = page_results(
            session,
            dataset_id,
            dataset_version_id=version_id,
            before_id=read_id(cursor),
            limit=limit + 1,
        )
    page, after = cut_page(rows, limit, lambda row: row.qres_id)
    return reply(ResultPage([to_schema(row, ResultItem) for row in page], after))


@router.get(
    "/sla/status",
    operation_id="get_sla_status",
    summary="List datasets in breach of their SLA",
    **route_docs(SlaStatus, 400),
)
def get_sla_status(
    request: Request, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """Datasets whose newest version is older than the SLA allows or missing; by name."""
    now = clock.now()
    with services_of(request).sessions.reading() as session:
        stale = list_stale_datasets(session, now, after=read_text(cursor) or "", limit=limit + 1)
    page, after = cut_page(stale, limit, lambda dataset: dataset.full_name)
    items = [
        StaleItem(
            dataset.dataset_id,
            dataset.full_name,
            dataset.last_produced_at,
            dataset.allowed.total_seconds(),
        )
        for dataset in page
    ]
    return reply(SlaStatus(now, items, after))
