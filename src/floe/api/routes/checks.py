"""The checks of a dataset and their verdicts, and which datasets break their SLA."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from floe import clock
from floe.api.access import GuardedRoute
from floe.api.answers import reply
from floe.api.cursors import cut_page, read_number, read_text
from floe.api.deps import DEFAULT_LIMIT, Cursor, Limit, Number, OptionalNumber
from floe.api.documents import gives
from floe.api.schemas.datasets import SlaStatus, StaleItem
from floe.api.schemas.fields import shaped
from floe.api.schemas.governance import CheckItem, CheckPage, ResultItem, ResultPage
from floe.api.services import services_of
from floe.catalog import list_checks as checks_of
from floe.catalog import list_stale_datasets
from floe.catalog.checks import page_results
from floe.catalog.datasets import get_dataset

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["quality"])


@router.get(
    "/dataset/{dataset_id}/checks",
    operation_id="list_checks",
    summary="The checks of a dataset",
    **gives(CheckPage, 400, 404),
)
def list_checks(
    request: Request, dataset_id: Number, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """Those in force, by name."""
    with services_of(request).sessions.reading() as session:
        get_dataset(session, dataset_id)
        rows = checks_of(session, dataset_id, after=read_text(cursor) or "", limit=limit + 1)
        page, after = cut_page(rows, limit, lambda row: row.name)
        return reply(CheckPage([shaped(row, CheckItem) for row in page], after))


@router.get(
    "/dataset/{dataset_id}/check-results",
    operation_id="list_check_results",
    summary="What the checks of a dataset found",
    **gives(ResultPage, 400, 404),
)
def list_check_results(
    request: Request,
    dataset_id: Number,
    *,
    version_id: OptionalNumber = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """The newest first; of one version, or of all."""
    with services_of(request).sessions.reading() as session:
        get_dataset(session, dataset_id)
        rows = page_results(
            session,
            dataset_id,
            dataset_version_id=version_id,
            before_id=read_number(cursor),
            limit=limit + 1,
        )
    page, after = cut_page(rows, limit, lambda row: row.qres_id)
    return reply(ResultPage([shaped(row, ResultItem) for row in page], after))


@router.get(
    "/sla/status",
    operation_id="get_sla_status",
    summary="The datasets that break their SLA",
    **gives(SlaStatus, 400),
)
def get_sla_status(
    request: Request, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """Those whose newest version is older than their SLA allows, or that have none; by name."""
    now = clock.now()
    with services_of(request).sessions.reading() as session:
        stale = list_stale_datasets(session, now, after=read_text(cursor) or "", limit=limit + 1)
    page, after = cut_page(stale, limit, lambda one: one.full_name)
    items = [
        StaleItem(one.dataset_id, one.full_name, one.last_produced_at, one.allowed.total_seconds())
        for one in page
    ]
    return reply(SlaStatus(now, items, after))
