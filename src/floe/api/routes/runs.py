"""Routes of runs: list, get, and details."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.deps import (
    DEFAULT_LIMIT,
    Cursor,
    Day,
    Limit,
    OptionalId,
    Timestamp,
    cut_page,
    given,
    read_id,
    services_of,
)
from floe.api.openapi import route_docs
from floe.api.responses import reply, reply_single
from floe.api.schemas.processes import RunPage
from floe.catalog import find_process
from floe.catalog.run_details import RunStory, get_run_story
from floe.catalog.runs import RunDetail, describe_run, page_runs

State = Annotated[
    list[Literal["STARTED", "SUCCESS", "FAILED", "CANCELLED", "LOST"]] | None,
    Query(max_length=5),
]

RunUuid = Annotated[UUID, Path(examples=["0190a0f2-7b1c-7cc3-8f36-3c1f1d2c9a51"])]

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["runs"])


@router.get(
    "/runs", operation_id="list_runs", summary="List runs", **route_docs(RunPage, 400, 404, 409)
)
def list_runs(
    request: Request,
    *,
    process_id: OptionalId = None,
    process_key: Annotated[str | None, Query(min_length=1, max_length=600)] = None,
    state: State = None,
    business_date: Day = None,
    since: Timestamp = None,
    until: Timestamp = None,
    parent: Annotated[UUID | None, Query(description="Only runs started by this run.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Newest first; filter by process, state, business date and start time."""
    with services_of(request).sessions.reading() as session:
        if process_key is not None:
            process_id = find_process(session, process_key).process_id
        wanted = {
            "process_id": process_id,
            "statuses": state,
            "business_date": business_date,
            "since": since,
            "until": until,
            "parent_run_uuid": parent and str(parent),
            "before_id": read_id(cursor),
        }
        rows = page_runs(session, limit + 1, **given(wanted))
    return reply(RunPage(*cut_page(rows, limit, lambda row: row.run_id)))


@router.get(
    "/run/{run_uuid}", operation_id="get_run", summary="Get a run", **route_docs(RunDetail, 404)
)
def get_run(request: Request, run_uuid: RunUuid) -> Response:
    """With the reason of a failure, its inputs, outputs and steps."""
    with services_of(request).sessions.reading() as session:
        return reply_single(request, describe_run(session, str(run_uuid)))


@router.get(
    "/run/{run_uuid}/details",
    operation_id="get_run_details",
    summary="Get all details of a run",
    **route_docs(RunStory, 404),
)
def get_details(request: Request, run_uuid: RunUuid) -> Response:
    """Like `floe show`: also its SQL, checks with samples, parent and children."""
    with services_of(request).sessions.reading() as session:
        return reply_single(request, get_run_story(session, str(run_uuid)))
