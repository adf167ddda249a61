"""Routes of drift between events and declarations, and decisions on it."""

from typing import TYPE_CHECKING, Literal

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.bodies import read_json
from floe.api.deps import (
    DEFAULT_LIMIT,
    Cursor,
    Limit,
    OptionalId,
    RowId,
    caller_of,
    cut_page,
    read_id,
    services_of,
    write_cursor,
)
from floe.api.openapi import route_docs
from floe.api.responses import reply
from floe.api.routes.registrations import has_no_body
from floe.api.schemas.governance import (
    ClaimDecision,
    ClaimPage,
    Decision,
    SplitDone,
    SplitRequest,
)
from floe.api.schemas.lineage import DriftPage
from floe.catalog.drift import ACCEPTED, DISMISSED, accept_claim, dismiss_claim, page_drift
from floe.catalog.drift import list_drift_claims as page_claims
from floe.catalog.joins.splitting import split_dataset as split

if TYPE_CHECKING:
    from floe.catalog.database import Sessions
    from floe.catalog.principals import Identity

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["governance"])


@router.get(
    "/drift",
    operation_id="list_drift",
    summary="List edges declared but not observed, or observed but not declared",
    **route_docs(DriftPage, 400),
)
def list_drift(
    request: Request,
    *,
    process_id: OptionalId = None,
    dataset_id: OptionalId = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Ordered by edge id.

    A page examines a limited number of edges, so it can have fewer items than `limit`, or none,
    and still have a `next`. The list ends when `next` is null.
    """
    with services_of(request).sessions.reading() as session:
        drift, after = page_drift(
            session,
            limit,
            process_id=process_id,
            dataset_id=dataset_id,
            after=read_id(cursor) or 0,
        )
    return reply(DriftPage(drift, None if after is None else write_cursor(after)))


@router.get(
    "/drift/claims",
    operation_id="list_drift_claims",
    summary="List claims of events that contradict declarations",
    **route_docs(ClaimPage, 400),
)
def list_drift_claims(
    request: Request,
    *,
    status: Literal["OPEN", "DISMISSED"] = "OPEN",
    dataset_id: OptionalId = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Claims about identical datasets and foreign versions, oldest first.

    An event says that two datasets are the same, or another job announces a version of a
    dataset that floe writes.
    """
    with services_of(request).sessions.reading() as session:
        claims = page_claims(
            session,
            status=status,
            dataset_id=dataset_id,
            after=read_id(cursor) or 0,
            limit=limit + 1,
        )
    return reply(ClaimPage(*cut_page(claims, limit, lambda claim: claim.claim_id)))


@router.post(
    "/drift/claim/{claim_id}/accept",
    operation_id="accept_drift_claim",
    summary="Accept that two datasets are the same",
    **route_docs(ClaimDecision, 400, 404, 409, 413, 415, takes=Decision, may_be_empty=True),
)
async def accept_drift_claim(request: Request, claim_id: RowId) -> Response:
    """Join the two datasets of the claim. `/dataset/split` reverts this."""
    return await _decide(request, claim_id, ACCEPTED)


@router.post(
    "/drift/claim/{claim_id}/dismiss",
    operation_id="dismiss_drift_claim",
    summary="Dismiss a claim",
    **route_docs(ClaimDecision, 400, 404, 409, 413, 415, takes=Decision, may_be_empty=True),
)
async def dismiss_drift_claim(request: Request, claim_id: RowId) -> Response:
    """Change nothing; the same claim is not listed again."""
    return await _decide(request, claim_id, DISMISSED)


async def _decide(request: Request, claim_id: int, verdict: str) -> Response:
    given = Decision() if has_no_body(request) else await read_json(request, Decision)
    sessions, caller = services_of(request).sessions, caller_of(request)
    return await run_in_threadpool(
        _write_decision, sessions, caller, claim_id, verdict, given.comment
    )


def _write_decision(
    sessions: "Sessions", caller: "Identity", claim_id: int, verdict: str, comment: str | None
) -> Response:
    dataset = None
    with sessions.writing() as session:
        if verdict == ACCEPTED:
            dataset = accept_claim(session, claim_id, actor=caller.name, comment=comment)
        else:
            dismiss_claim(session, claim_id, actor=caller.name, comment=comment)
    return reply(ClaimDecision(claim_id, verdict, dataset))


@router.post(
    "/dataset/split",
    operation_id="split_dataset",
    summary="Split two joined datasets",
    **route_docs(SplitDone, 400, 404, 409, 413, 415, takes=SplitRequest),
)
async def split_dataset(request: Request) -> Response:
    """Restore a dataset that was joined to another, by its former full name.

    Both datasets get back their own versions, states, edges and aliases. What was added after the
    join remains with the dataset it was joined to.
    """
    wanted = await read_json(request, SplitRequest)
    sessions, caller = services_of(request).sessions, caller_of(request)
    return await run_in_threadpool(_write_split, sessions, caller, wanted)


def _write_split(sessions: "Sessions", caller: "Identity", wanted: SplitRequest) -> Response:
    with sessions.writing() as session:
        restored, kept = split(session, wanted.full_name, actor=caller.name, reason=wanted.comment)
        done = SplitDone(restored.dataset_id, restored.full_name, kept.dataset_id, kept.full_name)
    return reply(done)
