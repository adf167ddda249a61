"""Routes of registrations and the audit log."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query
from msgspec import structs
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.bodies import read_json
from floe.api.deps import (
    DEFAULT_LIMIT,
    Cursor,
    Limit,
    RowId,
    caller_of,
    cut_page,
    read_id,
    services_of,
)
from floe.api.openapi import route_docs
from floe.api.responses import reply, reply_single
from floe.api.schemas import to_schema
from floe.api.schemas.datasets import DatasetRequest
from floe.api.schemas.governance import (
    AuditItem,
    AuditPage,
    Decision,
    RegistrationItem,
    RegistrationPage,
)
from floe.catalog.audit import list_audit as page_audit
from floe.catalog.audit import record_audit
from floe.catalog.datasets import get_dataset
from floe.catalog.registrations import approve_registration as approve
from floe.catalog.registrations import get_registration as get_by_id
from floe.catalog.registrations import page_registrations
from floe.catalog.registrations import reject_registration as reject
from floe.catalog.registrations import submit_registration as submit

if TYPE_CHECKING:
    from floe.catalog.database import Sessions
    from floe.catalog.principals import Identity

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["governance"])


@router.post(
    "/dataset/register",
    operation_id="submit_registration",
    summary="Request the registration of a dataset",
    **route_docs(RegistrationItem, 400, 409, 413, 415, takes=DatasetRequest, status=201),
)
async def submit_registration(request: Request) -> Response:
    """A new dataset is a DRAFT until a steward approves it.

    A dataset already known from events does not change until then.
    """
    wanted = await read_json(request, DatasetRequest)
    sessions, caller = services_of(request).sessions, caller_of(request)
    return await run_in_threadpool(_submit, sessions, caller, wanted)


def _submit(sessions: "Sessions", caller: "Identity", wanted: DatasetRequest) -> Response:
    asked = structs.asdict(wanted)
    values = {name: asked[name] for name in asked if name not in ("namespace", "name", "comment")}
    with sessions.writing() as session:
        registration = submit(
            session,
            wanted.namespace,
            wanted.name,
            submitted_by=caller.name,
            request=asked,
            **values,
        )
        item = _item(session, registration)
        record_audit(
            session,
            caller.name,
            "registration.submit",
            "REGISTRATION",
            str(registration.reg_id),
            after=asked,
        )
    return reply(item, 201)


@router.get(
    "/registrations",
    operation_id="list_registrations",
    summary="List registration requests",
    **route_docs(RegistrationPage, 400),
)
def list_registrations(
    request: Request,
    *,
    status: Literal["PENDING", "APPROVED", "REJECTED"] | None = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Oldest first."""
    with services_of(request).sessions.reading() as session:
        rows = page_registrations(
            session, status=status, after_id=read_id(cursor) or 0, limit=limit + 1
        )
    page, after = cut_page(rows, limit, lambda row: row.reg_id)
    return reply(RegistrationPage([to_schema(row, RegistrationItem) for row in page], after))


@router.get(
    "/registration/{reg_id}",
    operation_id="get_registration",
    summary="Get a registration request",
    **route_docs(RegistrationItem, 404),
)
def get_registration(request: Request, reg_id: RowId) -> Response:
    """What was requested, by whom, and the decision."""
    with services_of(request).sessions.reading() as session:
        return reply_single(request, _item(session, get_by_id(session, reg_id)))


@router.post(
    "/registration/{reg_id}/approve",
    operation_id="approve_registration",
    summary="Approve a registration request",
    **route_docs(RegistrationItem, 400, 404, 409, 413, 415, takes=Decision, may_be_empty=True),
)
async def approve_registration(request: Request, reg_id: RowId) -> Response:
    """The dataset becomes ACTIVE; events do not overwrite the requested values."""
    return await _decide(request, reg_id, "approve")


@router.post(
    "/registration/{reg_id}/reject",
    operation_id="reject_registration",
    summary="Reject a registration request",
    **route_docs(RegistrationItem, 400, 404, 409, 413, 415, takes=Decision, may_be_empty=True),
)
async def reject_registration(request: Request, reg_id: RowId) -> Response:
    """The draft is deprecated and kept as a record; it can be requested again.

    A dataset already known from events does not change.
    """
    return await _decide(request, reg_id, "reject")


async def _decide(request: Request, reg_id: int, verdict: str) -> Response:
    decision = Decision() if has_no_body(request) else await read_json(request, Decision)
    sessions, caller = services_of(request).sessions, caller_of(request)
    return await run_in_threadpool(_write_decision, sessions, caller, reg_id, verdict, decision)


def has_no_body(request: Request) -> bool:
    """Return whether a request has no body, whatever its content type."""
    headers = request.headers
    return headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers


_VERDICTS = {"approve": approve, "reject": reject}


def _write_decision(
    sessions: "Sessions", caller: "Identity", reg_id: int, verdict: str, decision: Decision
) -> Response:
    with sessions.writing() as session:
        before = get_by_id(session, reg_id).status
        registration = _VERDICTS[verdict](
            session, reg_id, reviewer=caller.name, comment=decision.comment
        )
        item = _item(session, registration)
        record_audit(
            session,
            caller.name,
            f"registration.{verdict}",
            "REGISTRATION",
            str(reg_id),
            before={"status": before},
            after={"status": registration.status, "dataset": item.full_name},
            reason=decision.comment,
        )
    return reply(item)


def _item(session: Any, registration: Any) -> RegistrationItem:
    item = to_schema(registration, RegistrationItem)
    item.full_name = get_dataset(session, registration.dataset_id).full_name
    return item


@router.get(
    "/audit", operation_id="list_audit", summary="List the audit log", **route_docs(AuditPage, 400)
)
def list_audit(
    request: Request,
    *,
    object_type: Annotated[str | None, Query(max_length=50)] = None,
    object_key: Annotated[str | None, Query(max_length=600)] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Who changed what, with the values before and after, newest first."""
    with services_of(request).sessions.reading() as session:
        rows = page_audit(
            session,
            object_type=object_type,
            object_key=object_key,
            before_id=read_id(cursor),
            limit=limit + 1,
        )
        page, after = cut_page(rows, limit, lambda row: row.audit_id)
        return reply(AuditPage([to_schema(row, AuditItem) for row in page], after))
