"""Routes of datasets: search, details, changes, history, owners and categories."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from msgspec import UNSET, structs
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute, check_ownership
from floe.api.bodies import read_json
from floe.api.deps import (
    DEFAULT_LIMIT,
    Cursor,
    FullName,
    Limit,
    RowId,
    Word,
    caller_of,
    cut_page,
    given,
    read_id,
    read_name,
    read_text,
    services_of,
)
from floe.api.openapi import route_docs
from floe.api.responses import reply, reply_single
from floe.api.schemas import to_schema
from floe.api.schemas.datasets import (
    DatasetChange,
    DatasetPage,
    HistoryItem,
    HistoryPage,
    TallyPage,
)
from floe.catalog import find_dataset as find_by_name
from floe.catalog import list_tags
from floe.catalog.audit import record_audit
from floe.catalog.dataset_details import DatasetDetail, describe_dataset
from floe.catalog.datasets import (
    count_categories,
    count_owners,
    page_dataset_events,
    page_datasets,
    replace_tags,
)
from floe.catalog.datasets import get_dataset as get_by_id
from floe.catalog.datasets import update_dataset as change_dataset
from floe.catalog.search import SearchFilters, search_datasets

if TYPE_CHECKING:
    from floe.catalog.database import Sessions
    from floe.catalog.principals import Identity


router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["datasets"])


@router.get(
    "/datasets",
    operation_id="list_datasets",
    summary="Search or list datasets",
    **route_docs(DatasetPage, 400),
)
def list_datasets(
    request: Request,
    *,
    text: Annotated[
        str, Query(max_length=500, description="Words in a name, owner, tag or column.")
    ] = "",
    category: Word = None,
    team: Word = None,
    format: Word = None,  # noqa: A002 - named for the query parameter it is
    status: Word = None,
    tag: Word = None,
    project: Word = None,
    facets: Annotated[bool, Query(description="Count facets and total on the first page.")] = True,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """The best matches first; without `text`, all datasets by name."""
    filters = SearchFilters(category, team, format, status, tag, project)
    counted = facets and cursor is None
    with services_of(request).sessions.reading() as session:
        if text.strip() or counted or tag or project:
            return reply(_search(session, text, filters, limit, cursor, facets=facets))
        wanted = given({"category": category, "team": team, "format": format, "status": status})
        rows = page_datasets(session, limit + 1, after=read_name(cursor), **wanted)
    page, after = cut_page(rows, limit, lambda hit: [hit.name, hit.dataset_id])
    return reply(DatasetPage(page, after, None, {}, ()))


def _search(
    session: Any,
    text: str,
    filters: SearchFilters,
    limit: int,
    cursor: str | None,
    *,
    facets: bool,
) -> DatasetPage:
    page = search_datasets(
        session, text, filters=filters, limit=limit, cursor=cursor, with_facets=facets
    )
    return DatasetPage(page.hits, page.next_cursor, page.total, page.facets, page.suggestions)


@router.get(
    "/dataset/{dataset_id}",
    operation_id="get_dataset",
    summary="Get a dataset with its newest versions",
    **route_docs(DatasetDetail, 404),
)
def get_dataset(request: Request, dataset_id: RowId) -> Response:
    """Metadata, columns, tags, newest versions, producers and consumers."""
    with services_of(request).sessions.reading() as session:
        return reply_single(request, describe_dataset(session, dataset_id))


@router.get(
    "/dataset",
    operation_id="find_dataset",
    summary="Get a dataset by name",
    **route_docs(DatasetDetail, 404, 409),
)
def find_dataset(request: Request, full_name: FullName) -> Response:
    """Names can contain slashes, so the name is a query parameter."""
    with services_of(request).sessions.reading() as session:
        dataset = find_by_name(session, full_name)
        return reply_single(request, describe_dataset(session, dataset.dataset_id))


@router.patch(
    "/dataset/{dataset_id}",
    operation_id="update_dataset",
    summary="Change the metadata of a dataset",
    **route_docs(DatasetDetail, 400, 404, 413, 415, takes=DatasetChange),
)
async def update_dataset(request: Request, dataset_id: RowId) -> Response:
    """Change description, category, owner and tags.

    Owners may change their own datasets. Events do not overwrite these values from then on.
    """
    wanted = await read_json(request, DatasetChange)
    sessions, caller = services_of(request).sessions, caller_of(request)
    return await run_in_threadpool(_update, sessions, caller, dataset_id, wanted)


def _update(
    sessions: "Sessions", caller: "Identity", dataset_id: int, wanted: DatasetChange
) -> Response:
    values: dict[str, Any] = {
        name: value for name, value in structs.asdict(wanted).items() if value is not UNSET
    }
    with sessions.writing() as session:
        dataset = get_by_id(session, dataset_id)
        check_ownership(caller, "update_dataset", dataset)
        if values:
            _change(session, caller, dataset, values)
        return reply(describe_dataset(session, dataset_id))


def _change(session: Any, caller: "Identity", dataset: Any, values: dict[str, Any]) -> None:
    """Set the given values, which events do not overwrite from now on."""
    tags = values.pop("tags", None)
    change = change_dataset(session, dataset, actor=caller.name, **values, curated=True)
    if tags is not None:
        before = list_tags(session, dataset.dataset_id)
        if replace_tags(session, dataset.dataset_id, tags):
            change.add("tags", before, sorted(set(tags)))
    if change:
        record_audit(
            session,
            caller.name,
            "dataset.update",
            "DATASET",
            dataset.full_name,
            before=change.before,
            after=change.after,
        )


@router.get(
    "/dataset/{dataset_id}/history",
    operation_id="list_dataset_history",
    summary="List the history of a dataset",
    **route_docs(HistoryPage, 400, 404),
)
def list_dataset_history(
    request: Request, dataset_id: RowId, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """Registered, renamed, version ready, retracted …; newest first."""
    with services_of(request).sessions.reading() as session:
        get_by_id(session, dataset_id)
        rows = page_dataset_events(session, dataset_id, before_id=read_id(cursor), limit=limit + 1)
        page, after = cut_page(rows, limit, lambda row: row.dataset_event_id)
        return reply(HistoryPage([to_schema(row, HistoryItem) for row in page], after))


@router.get(
    "/owners",
    operation_id="list_owners",
    summary="List teams with their number of datasets",
    **route_docs(TallyPage, 400),
)
def list_owners(request: Request, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Response:
    """By name, without deprecated datasets."""
    with services_of(request).sessions.reading() as session:
        owners = count_owners(session, after=read_text(cursor) or "", limit=limit + 1)
    return reply(TallyPage(*cut_page(owners, limit, lambda owner: owner.value)))


@router.get(
    "/categories",
    operation_id="list_categories",
    summary="List categories with their number of datasets",
    **route_docs(TallyPage, 400),
)
def list_categories(
    request: Request, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """By name, without deprecated datasets."""
    with services_of(request).sessions.reading() as session:
        categories = count_categories(session, after=read_text(cursor) or "", limit=limit + 1)
    return reply(TallyPage(*cut_page(categories, limit, lambda category: category.value)))
