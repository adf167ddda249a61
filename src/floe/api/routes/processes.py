"""Processes: listed by key, and one with what it reads and writes and its newest runs."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.answers import reply, reply_single
from floe.api.cursors import cut_page, read_text
from floe.api.deps import DEFAULT_LIMIT, Cursor, Limit, Number
from floe.api.documents import gives
from floe.api.schemas.processes import ProcessDetail, ProcessItem, ProcessPage, RunItem
from floe.api.services import services_of
from floe.catalog import describe_sla
from floe.catalog import find_process as find_by_key
from floe.catalog.processes import describe_contract, page_processes
from floe.catalog.processes import get_process as get_by_number
from floe.catalog.runs import page_runs

RUNS_SHOWN = 10

ProcessKey = Annotated[
    str,
    Query(
        min_length=1,
        max_length=600,
        description="Its key, its name where that is unique, or its number.",
        examples=["AUTOSYS/BOX/JobA"],
    ),
]
Status = Annotated[list[str] | None, Query(max_length=10, examples=[["ACTIVE"]])]

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["processes"])


@router.get(
    "/processes",
    operation_id="list_processes",
    summary="Processes by key",
    **gives(ProcessPage, 400),
)
def list_processes(
    request: Request,
    status: Status = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Declared ones and those that only events have shown."""
    with services_of(request).sessions.reading() as session:
        rows = page_processes(
            session, limit + 1, after=read_text(cursor) or "", statuses=status or ()
        )
    page, after = cut_page(rows, limit, lambda row: row.process_key)
    return reply(ProcessPage([ProcessItem(*row) for row in page], after))


@router.get(
    "/process/{process_id}",
    operation_id="get_process",
    summary="One process with its newest runs",
    **gives(ProcessDetail, 404),
)
def get_process(request: Request, process_id: Number) -> Response:
    """What it reads and writes, and how it ran lately."""
    with services_of(request).sessions.reading() as session:
        return reply_single(request, _detail(session, process_id))


@router.get(
    "/process",
    operation_id="find_process",
    summary="The same by key",
    **gives(ProcessDetail, 404, 409),
)
def find_process(request: Request, process_key: ProcessKey) -> Response:
    """Keys hold slashes, so they come as a parameter."""
    with services_of(request).sessions.reading() as session:
        return reply_single(request, _detail(session, find_by_key(session, process_key).process_id))


def _detail(session: Any, process_id: int) -> ProcessDetail:
    *shown, sla_id = get_by_number(session, process_id)
    detail = ProcessDetail(*shown)
    contract = describe_contract(session, process_id)
    detail.inputs, detail.outputs = contract.inputs, contract.outputs
    detail.sla = describe_sla(session, sla_id)
    runs = page_runs(session, RUNS_SHOWN, process_id=process_id)
    detail.runs = [RunItem(*run) for run in runs]
    return detail
