"""Routes of versions: list, get, retract; and the schemas of a dataset."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute, check_ownership
from floe.api.bodies import read_json
from floe.api.deps import (
    DEFAULT_LIMIT,
    Cursor,
    Limit,
    RowId,
    caller_of,
    cut_page,
    read_id,
    read_timestamp,
    services_of,
)
from floe.api.openapi import route_docs
from floe.api.responses import reply, reply_single
from floe.api.schemas import to_schema
from floe.api.schemas.datasets import (
    Retracted,
    Retraction,
    Retyped,
    SchemaChange,
    SchemaItem,
    SchemaPage,
    VersionDetail,
    VersionPage,
)
from floe.catalog import diff_schemas as compare_schemas
from floe.catalog import get_version as get_by_tag
from floe.catalog import list_columns
from floe.catalog.audit import record_audit
from floe.catalog.datasets import get_dataset
from floe.catalog.impact import list_derived_versions
from floe.catalog.schemas import list_columns_of, list_schema_history
from floe.catalog.stable_names import is_pending, retract_and_mark
from floe.catalog.version_queries import (
    describe_state,
    get_version_by_id,
    page_versions,
)
from floe.catalog.versions import REJECTED, RETRACTED

if TYPE_CHECKING:
    from floe.catalog.database import Sessions
    from floe.catalog.principals import Identity

Tag = Annotated[str, Query(min_length=1, max_length=300, examples=["2026-09-01.1"])]

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["versions"])


@router.get(
    "/dataset/{dataset_id}/versions",
    operation_id="list_versions",
    summary="List the versions of a dataset",
    **route_docs(VersionPage, 400, 404),
)
def list_versions(
    request: Request, dataset_id: RowId, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """Newest first."""
    with services_of(request).sessions.reading() as session:
        get_dataset(session, dataset_id)
        rows = page_versions(session, dataset_id, limit + 1, before_id=read_id(cursor))
    return reply(VersionPage(*cut_page(rows, limit, lambda row: row.dataset_version_id)))


@router.get(
    "/dataset/{dataset_id}/version",
    operation_id="find_version",
    summary="Get a version by tag",
    **route_docs(VersionDetail, 404),
)
def find_version(request: Request, dataset_id: RowId, tag: Tag) -> Response:
    """With its columns and the run that produced it."""
    with services_of(request).sessions.reading() as session:
        version = get_by_tag(session, get_dataset(session, dataset_id), tag)
        return reply_single(request, _detail(session, version))


@router.get(
    "/version/{version_id}",
    operation_id="get_version",
    summary="Get a version by id",
    **route_docs(VersionDetail, 404),
)
def get_version(request: Request, version_id: RowId) -> Response:
    """With its columns and the run that produced it."""
    with services_of(request).sessions.reading() as session:
        return reply_single(request, _detail(session, get_version_by_id(session, version_id)))


def _detail(session: Any, version: Any) -> VersionDetail:
    detail = to_schema(version, VersionDetail)
    detail.full_name = get_dataset(session, version.dataset_id).full_name
    detail.columns = list_columns(session, version.schema_hash)
    if version.state in (REJECTED, RETRACTED):
        event = describe_state(session, version)
        detail.reason, detail.actor = (event.reason, event.actor) if event else (None, None)
    return detail


@router.post(
    "/version/{version_id}/retract",
    operation_id="retract_version",
    summary="Retract a version",
    **route_docs(Retracted, 400, 404, 409, 413, 415, takes=Retraction),
)
async def retract_version(request: Request, version_id: RowId) -> Response:
    """A retracted version triggers nothing; the version it superseded is READY again.

    `built_on` lists the versions computed from it, with their owners; their state does not change.
    `still_shown` is true while the stable name of the dataset still leads to it: the next run of
    the project changes that, or `floe retract` does so immediately.
    """
    wanted = await read_json(request, Retraction)
    sessions, caller = services_of(request).sessions, caller_of(request)
    return await run_in_threadpool(_retract, sessions, caller, version_id, wanted.reason)


def _retract(sessions: "Sessions", caller: "Identity", version_id: int, reason: str) -> Response:
    with sessions.writing() as session:
        version = get_version_by_id(session, version_id)
        dataset = get_dataset(session, version.dataset_id)
        check_ownership(caller, "retract_version", dataset)
        before = version.state
        again = retract_and_mark(session, version, reason=reason, actor=caller.name)
        ready_again = again.version_tag if again else None
        record_audit(
            session,
            caller.name,
            "version.retract",
            "VERSION",
            f"{dataset.full_name}@{version.version_tag}"[:600],
            before={"state": before},
            after={"state": version.state, "ready_again": ready_again},
            reason=reason,
        )
        built_on = list_derived_versions(session, version.dataset_version_id)
        return reply(Retracted(version.version_tag, ready_again, is_pending(version), built_on))


@router.get(
    "/dataset/{dataset_id}/schemas",
    operation_id="list_schemas",
    summary="List the schemas of a dataset over time",
    **route_docs(SchemaPage, 400, 404),
)
def list_schemas(
    request: Request, dataset_id: RowId, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """With the first and last time each was observed, newest first."""
    with services_of(request).sessions.reading() as session:
        get_dataset(session, dataset_id)
        seen = list_schema_history(
            session, dataset_id, after=read_timestamp(cursor), limit=limit + 1
        )
        page, after = cut_page(
            seen, limit, lambda sighting: (sighting.last_seen, sighting.schema_hash)
        )
        columns = list_columns_of(session, (sighting.schema_hash for sighting in page))
        items = [
            SchemaItem(
                sighting.schema_hash,
                sighting.first_seen,
                sighting.last_seen,
                columns[sighting.schema_hash],
            )
            for sighting in page
        ]
        return reply(SchemaPage(items, after))


@router.get(
    "/dataset/{dataset_id}/schemas/diff",
    operation_id="diff_schemas",
    summary="Compare the schemas of two versions",
    **route_docs(SchemaChange, 404),
)
def diff_schemas(request: Request, dataset_id: RowId, before: Tag, after: Tag) -> Response:
    """Differences from `before` to `after`, and whether they can break readers."""
    with services_of(request).sessions.reading() as session:
        dataset = get_dataset(session, dataset_id)
        old, new = (get_by_tag(session, dataset, tag).schema_hash for tag in (before, after))
        change = compare_schemas(list_columns(session, old), list_columns(session, new))
    return reply(
        SchemaChange(
            before=before,
            after=after,
            breaking=change.breaking,
            added=change.added,
            removed=change.removed,
            retyped=[Retyped(*retyped) for retyped in change.retyped],
            tightened=change.tightened,
            loosened=change.loosened,
        )
    )
