"""Runs: filtered lists, and one with everything that is known about it."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.answers import reply, reply_single
from floe.api.cursors import cut_page, read_number
from floe.api.deps import DEFAULT_LIMIT, Cursor, Day, Limit, Moment, OptionalNumber, given
from floe.api.documents import gives
from floe.api.schemas.processes import (
    CheckOutcomeItem,
    InputItem,
    OutputItem,
    RelatedRunItem,
    RunDetail,
    RunItem,
    RunPage,
    RunSqlItem,
    RunStory,
    StepItem,
)
from floe.api.services import services_of
from floe.catalog import find_process
from floe.catalog.run_details import get_run_details
from floe.catalog.runs import (
    describe_inputs,
    describe_outputs,
    describe_run,
    describe_steps,
    page_runs,
    reason_of_run,
)

State = Annotated[
    list[Literal["STARTED", "SUCCESS", "FAILED", "CANCELLED", "LOST"]] | None,
    Query(max_length=5),
]

RunUuid = Annotated[UUID, Path(examples=["0190a0f2-7b1c-7cc3-8f36-3c1f1d2c9a51"])]

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["runs"])


@router.get("/runs", operation_id="list_runs", summary="Runs", **gives(RunPage, 400, 404, 409))
def list_runs(
    request: Request,
    *,
    process_id: OptionalNumber = None,
    process_key: Annotated[str | None, Query(min_length=1, max_length=600)] = None,
    state: State = None,
    business_date: Day = None,
    since: Moment = None,
    until: Moment = None,
    parent: Annotated[UUID | None, Query(description="Only those that this run started.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """The newest first; by process, state, business date, and when they started."""
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
            "before_id": read_number(cursor),
        }
        rows = page_runs(session, limit + 1, **given(wanted))
    page, after = cut_page(rows, limit, lambda row: row.run_id)
    return reply(RunPage([RunItem(*row) for row in page], after))


@router.get("/run/{run_uuid}", operation_id="get_run", summary="One run", **gives(RunDetail, 404))
def get_run(request: Request, run_uuid: RunUuid) -> Response:
    """Why it failed, what it read, which versions it made, and its steps."""
    with services_of(request).sessions.reading() as session:
        run = describe_run(session, str(run_uuid))
        detail = RunDetail(*run)
        detail.inputs = [InputItem(*row) for row in describe_inputs(session, run.run_id)]
        detail.outputs = [OutputItem(*row) for row in describe_outputs(session, run.run_uuid)]
        detail.steps = [StepItem(*row) for row in describe_steps(session, run.run_id)]
    detail.reason = reason_of_run(run.status, run.facets_json, run.parent_run_uuid)
    return reply_single(request, detail)


@router.get(
    "/run/{run_uuid}/details",
    operation_id="get_run_details",
    summary="Everything about one run",
    **gives(RunStory, 404),
)
def get_details(request: Request, run_uuid: RunUuid) -> Response:
    """As `floe show`: why it failed, its SQL, checks with samples, parent and children too."""
    with services_of(request).sessions.reading() as session:
        found = get_run_details(session, str(run_uuid))
    story = RunStory(
        *found.run,
        inputs=[InputItem(*row) for row in found.inputs],
        outputs=[OutputItem(*row) for row in found.outputs],
        steps=[StepItem(*row) for row in found.steps],
        reason=found.reason,
        trace=found.trace or None,
        seconds=found.seconds,
        attempts=found.attempts,
        where=found.where or None,
        sql=None if found.sql is None else RunSqlItem(*found.sql),
        parent=None if found.parent is None else RelatedRunItem(*found.parent),
        children=[RelatedRunItem(*row) for row in found.children],
        checks=[CheckOutcomeItem(*row) for row in found.checks],
    )
    return reply_single(request, story)
