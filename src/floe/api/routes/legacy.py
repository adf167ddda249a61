"""The two calls of old jobs: a dataset is ready, a process ran. They become events like all."""

from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.answers import reply
from floe.api.bodies import read_json
from floe.api.documents import gives
from floe.api.routes.ingest import take_event
from floe.api.schemas.legacy import DatasetReport, ProcessReport, Reported
from floe.api.services import services_of
from floe.client.messages import dataset_message, process_message, run_id_of

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["events"])


@router.post(
    "/register_dataset",
    operation_id="register_dataset",
    summary="Say that a version of a dataset is ready, or that it failed",
    **gives(Reported, 400, 413, 415, takes=DatasetReport, status=201),
)
async def register_dataset(request: Request) -> Response:
    """The one call that an old job needs. 201 means committed; the same again changes nothing."""
    report = await read_json(request, DatasetReport)
    services = services_of(request)
    message = dataset_message(**_given(report), lake=services.lake)
    await take_event(services, msgspec.json.encode(message))
    return reply(Reported(run_id_of(message)), 201)


@router.post(
    "/register_process",
    operation_id="register_process",
    summary="Say that a process started or ended",
    **gives(Reported, 400, 413, 415, takes=ProcessReport, status=201),
)
async def register_process(request: Request) -> Response:
    """Calls with the same run id are about one run. 201 means committed."""
    report = await read_json(request, ProcessReport)
    services = services_of(request)
    message = process_message(**_given(report), lake=services.lake)
    await take_event(services, msgspec.json.encode(message))
    return reply(Reported(run_id_of(message)), 201)


def _given(report: msgspec.Struct) -> dict[str, Any]:
    given: dict[str, Any] = msgspec.to_builtins(report)
    return {name: value for name, value in given.items() if value is not None}
