"""Routes of processes: list, and details with inputs, outputs and newest runs."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.deps import DEFAULT_LIMIT, Cursor, Limit, RowId, cut_page, read_text, services_of
from floe.api.openapi import route_docs
from floe.api.responses import reply, reply_single
from floe.api.schemas.processes import ProcessPage
from floe.catalog import find_process as find_by_key
from floe.catalog.processes import ProcessDetail, describe_process, page_processes

ProcessKey = Annotated[
    str,
    Query(
        min_length=1,
        max_length=600,
        description="Key, unique name or id of the process.",
        examples=["AUTOSYS/BOX/JobA"],
    ),
]
Status = Annotated[list[str] | None, Query(max_length=10, examples=[["ACTIVE"]])]

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["processes"])


@router.get(
    "/processes",
    operation_id="list_processes",
    summary="List processes",
    **route_docs(ProcessPage, 400),
)
def list_processes(
    request: Request,
    status: Status = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Declared processes, and processes known only from events; by key."""
    with services_of(request).sessions.reading() as session:
        rows = page_processes(
            session, limit + 1, after=read_text(cursor) or "", statuses=status or ()
        )
    return reply(ProcessPage(*cut_page(rows, limit, lambda row: row.process_key)))


@router.get(
    "/process/{process_id}",
    operation_id="get_process",
    summary="Get a process with its newest runs",
    **route_docs(ProcessDetail, 404),
)
def get_process(request: Request, process_id: RowId) -> Response:
    """With its inputs, outputs and newest runs."""
    with services_of(request).sessions.reading() as session:
        return reply_single(request, describe_process(session, process_id))


@router.get(
    "/process",
    operation_id="find_process",
    summary="Get a process by key",
    **route_docs(ProcessDetail, 404, 409),
)
def find_process(request: Request, process_key: ProcessKey) -> Response:
    """Keys contain slashes, so the key is a query parameter."""
    with services_of(request).sessions.reading() as session:
        process = find_by_key(session, process_key)
        return reply_single(request, describe_process(session, process.process_id))
