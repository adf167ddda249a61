"""Datasets: search, one with all about it, changes to it, its history, owners and categories."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from msgspec import UNSET, structs
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute, check_ownership
from floe.api.answers import reply, reply_single
from floe.api.bodies import read_json
from floe.api.cursors import cut_page, read_name, read_number, read_text
from floe.api.deps import DEFAULT_LIMIT, Cursor, FullName, Limit, Number, Word, given
from floe.api.documents import gives
from floe.api.routes.versions import version_items
from floe.api.schemas.datasets import (
    DatasetChange,
    DatasetDetail,
    DatasetPage,
    HistoryItem,
    HistoryPage,
    ProcessLink,
    TallyPage,
)
from floe.api.schemas.fields import shaped
from floe.api.services import caller_of, services_of
from floe.catalog import describe_sla, list_tags
from floe.catalog import find_dataset as find_by_name
from floe.catalog.audit import record_audit
from floe.catalog.datasets import (
    count_categories,
    count_owners,
    describe_dataset,
    describe_neighbours,
    describe_tags,
    page_dataset_events,
    page_datasets,
    replace_tags,
)
from floe.catalog.datasets import get_dataset as get_by_number
from floe.catalog.datasets import update_dataset as change_dataset
from floe.catalog.schemas import describe_columns
from floe.catalog.search import SearchFilters, search_datasets
from floe.catalog.versions import page_versions

if TYPE_CHECKING:
    from floe.catalog.principals import Identity
    from floe.catalog.sessions import Sessions

VERSIONS_SHOWN = 5

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["datasets"])


@router.get(
    "/datasets",
    operation_id="list_datasets",
    summary="Find datasets by words, or list them by name",
    **gives(DatasetPage, 400),
)
def list_datasets(
    request: Request,
    *,
    text: Annotated[
        str, Query(max_length=500, description="Words of a name, owner, tag or column.")
    ] = "",
    category: Word = None,
    team: Word = None,
    format: Word = None,  # noqa: A002 - named for the query parameter it is
    status: Word = None,
    tag: Word = None,
    project: Word = None,
    facets: Annotated[bool, Query(description="Count facets and total, on the first page.")] = True,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """The best hits first; without words all datasets by name."""
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
    summary="One dataset with its newest versions",
    **gives(DatasetDetail, 404),
)
def get_dataset(request: Request, dataset_id: Number) -> Response:
    """What it is, its columns and tags, its newest versions, and who writes and reads it."""
    with services_of(request).sessions.reading() as session:
        return reply_single(request, _detail(session, dataset_id))


@router.get(
    "/dataset",
    operation_id="find_dataset",
    summary="The same by name",
    **gives(DatasetDetail, 404, 409),
)
def find_dataset(request: Request, full_name: FullName) -> Response:
    """Names may hold slashes, so they come as a parameter."""
    with services_of(request).sessions.reading() as session:
        return reply_single(request, _detail(session, find_by_name(session, full_name).dataset_id))


def _detail(session: Any, dataset_id: int) -> DatasetDetail:
    *shown, sla_id = describe_dataset(session, dataset_id)
    detail = DatasetDetail(*shown)
    detail.tags = describe_tags(session, dataset_id)
    detail.sla = describe_sla(session, sla_id)
    detail.columns = describe_columns(session, detail.schema_hash)
    newest = page_versions(session, dataset_id, VERSIONS_SHOWN)
    detail.versions = version_items(session, detail.dataset_id, newest)
    producers, consumers = describe_neighbours(session, dataset_id)
    detail.producers = [ProcessLink(*process) for process in producers]
    detail.consumers = [ProcessLink(*process) for process in consumers]
    return detail


@router.patch(
    "/dataset/{dataset_id}",
    operation_id="update_dataset",
    summary="Change what is said of a dataset",
    **gives(DatasetDetail, 400, 404, 413, 415, takes=DatasetChange),
)
async def update_dataset(request: Request, dataset_id: Number) -> Response:
    """Its description, category, owner and tags. Owners may change their own datasets.

    From then on these stand above what events say.
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
        dataset = get_by_number(session, dataset_id)
        check_ownership(caller, "update_dataset", dataset)
        if values:
            _change(session, caller, dataset, values)
        return reply(_detail(session, dataset_id))


def _change(session: Any, caller: "Identity", dataset: Any, values: dict[str, Any]) -> None:
    """Set what was given, which from now on stands above what events say."""
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
    summary="What happened to a dataset",
    **gives(HistoryPage, 400, 404),
)
def list_dataset_history(
    request: Request, dataset_id: Number, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """Registered, renamed, a version ready, retracted …: who did it and when, the newest first."""
    with services_of(request).sessions.reading() as session:
        get_by_number(session, dataset_id)
        rows = page_dataset_events(
            session, dataset_id, before_id=read_number(cursor), limit=limit + 1
        )
        page, after = cut_page(rows, limit, lambda row: row.dataset_event_id)
        return reply(HistoryPage([shaped(row, HistoryItem) for row in page], after))


@router.get(
    "/owners",
    operation_id="list_owners",
    summary="Teams, and how many datasets each owns",
    **gives(TallyPage, 400),
)
def list_owners(request: Request, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Response:
    """By name. Deprecated datasets do not count."""
    with services_of(request).sessions.reading() as session:
        found = count_owners(session, after=read_text(cursor) or "", limit=limit + 1)
    return reply(TallyPage(*cut_page(found, limit, lambda one: one.value)))


@router.get(
    "/categories",
    operation_id="list_categories",
    summary="Categories, and how many datasets are in each",
    **gives(TallyPage, 400),
)
def list_categories(
    request: Request, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """By name. Deprecated datasets do not count."""
    with services_of(request).sessions.reading() as session:
        found = count_categories(session, after=read_text(cursor) or "", limit=limit + 1)
    return reply(TallyPage(*cut_page(found, limit, lambda one: one.value)))
