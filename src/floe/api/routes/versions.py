"""Versions of a dataset: listed, one, taken back; and its schemas, over time and compared."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute, check_ownership
from floe.api.answers import reply, reply_single
from floe.api.bodies import read_json
from floe.api.cursors import cut_page, read_moment, read_number
from floe.api.deps import DEFAULT_LIMIT, Cursor, Limit, Number
from floe.api.documents import gives
from floe.api.schemas.fields import shaped
from floe.api.schemas.versions import (
    BuiltOnItem,
    Retracted,
    Retraction,
    Retyped,
    SchemaChange,
    SchemaItem,
    SchemaPage,
    VersionDetail,
    VersionItem,
    VersionPage,
)
from floe.api.services import caller_of, services_of
from floe.catalog import diff_schemas as compare_schemas
from floe.catalog import get_version as get_by_tag
from floe.catalog import list_columns
from floe.catalog.audit import record_audit
from floe.catalog.datasets import get_dataset
from floe.catalog.derivation import list_built_on
from floe.catalog.retention import describe_state, describe_states
from floe.catalog.schemas import list_columns_of, list_schema_history
from floe.catalog.shown import is_pending, take_back
from floe.catalog.versions import REJECTED, RETRACTED, get_version_by_id, page_versions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from floe.catalog.principals import Identity
    from floe.catalog.sessions import Sessions
    from floe.catalog.versions import VersionRow

Tag = Annotated[str, Query(min_length=1, max_length=300, examples=["2026-09-01.1"])]

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["versions"])


@router.get(
    "/dataset/{dataset_id}/versions",
    operation_id="list_versions",
    summary="The versions of a dataset",
    **gives(VersionPage, 400, 404),
)
def list_versions(
    request: Request, dataset_id: Number, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """The newest first."""
    with services_of(request).sessions.reading() as session:
        get_dataset(session, dataset_id)
        rows = page_versions(session, dataset_id, limit + 1, before_id=read_number(cursor))
        page, after = cut_page(rows, limit, lambda row: row.dataset_version_id)
        items = version_items(session, dataset_id, page)
    return reply(VersionPage(items, after))


def version_items(
    session: "Session", dataset_id: int, rows: "Sequence[VersionRow]"
) -> list[VersionItem]:
    """Return versions as lists show them, with why they were rejected or retracted."""
    named = ((row.dataset_version_id, row.state) for row in rows)
    events = describe_states(session, named, dataset_id)
    items = []
    for row in rows:
        event = events.get(row.dataset_version_id)
        items.append(VersionItem(*row, *((event.reason, event.actor) if event else ())))
    return items


@router.get(
    "/dataset/{dataset_id}/version",
    operation_id="find_version",
    summary="A version by its tag",
    **gives(VersionDetail, 404),
)
def find_version(request: Request, dataset_id: Number, tag: Tag) -> Response:
    """With its columns, and the run that made it."""
    with services_of(request).sessions.reading() as session:
        version = get_by_tag(session, get_dataset(session, dataset_id), tag)
        return reply_single(request, _detail(session, version))


@router.get(
    "/version/{version_id}",
    operation_id="get_version",
    summary="A version by its number",
    **gives(VersionDetail, 404),
)
def get_version(request: Request, version_id: Number) -> Response:
    """With its columns, and the run that made it."""
    with services_of(request).sessions.reading() as session:
        return reply_single(request, _detail(session, get_version_by_id(session, version_id)))


def _detail(session: Any, version: Any) -> VersionDetail:
    detail = shaped(version, VersionDetail)
    detail.full_name = get_dataset(session, version.dataset_id).full_name
    detail.columns = list_columns(session, version.schema_hash)
    if version.state in (REJECTED, RETRACTED):
        event = describe_state(session, version)
        detail.reason, detail.actor = (event.reason, event.actor) if event else (None, None)
    return detail


@router.post(
    "/version/{version_id}/retract",
    operation_id="retract_version",
    summary="Take a version back",
    **gives(Retracted, 400, 404, 409, 413, 415, takes=Retraction),
)
async def retract_version(request: Request, version_id: Number) -> Response:
    """Nothing starts on it any more; the one that it had superseded is READY again.

    `built_on` names the versions that were made from it, with their owners: they keep their state.
    Where the stable name of a dataset that floe writes shows it, the next run of its project lets
    the name show another, or `floe retract` does at once: `still_shown` says so.
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
        again = take_back(session, version, reason=reason, actor=caller.name)
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
        built_on = [
            shaped({**one._asdict(), "version_tag": one.tag}, BuiltOnItem)
            for one in list_built_on(session, version.dataset_version_id)
        ]
        return reply(Retracted(version.version_tag, ready_again, is_pending(version), built_on))


@router.get(
    "/dataset/{dataset_id}/schemas",
    operation_id="list_schemas",
    summary="The schemas that a dataset has had",
    **gives(SchemaPage, 400, 404),
)
def list_schemas(
    request: Request, dataset_id: Number, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """When each was seen first and last, the newest first."""
    with services_of(request).sessions.reading() as session:
        get_dataset(session, dataset_id)
        seen = list_schema_history(session, dataset_id, after=read_moment(cursor), limit=limit + 1)
        page, after = cut_page(seen, limit, lambda one: (one.last_seen, one.schema_hash))
        columns = list_columns_of(session, (one.schema_hash for one in page))
        items = [
            SchemaItem(one.schema_hash, one.first_seen, one.last_seen, columns[one.schema_hash])
            for one in page
        ]
        return reply(SchemaPage(items, after))


@router.get(
    "/dataset/{dataset_id}/schemas/diff",
    operation_id="diff_schemas",
    summary="Compare the schemas of two versions",
    **gives(SchemaChange, 404),
)
def diff_schemas(request: Request, dataset_id: Number, before: Tag, after: Tag) -> Response:
    """What the second has that the first has not, and whether a reader of the first can break."""
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
            retyped=[Retyped(*one) for one in change.retyped],
            tightened=change.tightened,
            loosened=change.loosened,
        )
    )
