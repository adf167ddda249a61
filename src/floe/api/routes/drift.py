"""Drift: what events and declarations disagree on, and what stewards decide about it."""

from typing import TYPE_CHECKING, Literal

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.answers import reply
from floe.api.bodies import read_json
from floe.api.cursors import cut_page, read_number, write_cursor
from floe.api.deps import DEFAULT_LIMIT, Cursor, Limit, Number, OptionalNumber
from floe.api.documents import gives
from floe.api.routes.registrations import says_nothing
from floe.api.schemas.governance import (
    ClaimDecision,
    ClaimPage,
    Decision,
    SplitDone,
    SplitRequest,
)
from floe.api.schemas.lineage import DriftPage
from floe.api.services import caller_of, services_of
from floe.catalog.drift import page_drift
from floe.catalog.drift_claims import ACCEPTED, DISMISSED, accept_claim, dismiss_claim
from floe.catalog.drift_claims import list_drift_claims as page_claims
from floe.catalog.splitting import split_dataset as split

if TYPE_CHECKING:
    from floe.catalog.principals import Identity
    from floe.catalog.sessions import Sessions

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["governance"])


@router.get(
    "/drift",
    operation_id="list_drift",
    summary="Edges that are declared and not seen, or seen and not declared",
    **gives(DriftPage, 400),
)
def list_drift(
    request: Request,
    *,
    process_id: OptionalNumber = None,
    dataset_id: OptionalNumber = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """In the order of edge numbers.

    A page looks at a bounded number of edges: it can have fewer items than asked for, or none,
    and still have a `next`. The list ends where `next` is null.
    """
    with services_of(request).sessions.reading() as session:
        drift, after = page_drift(
            session,
            limit,
            process_id=process_id,
            dataset_id=dataset_id,
            after=read_number(cursor) or 0,
        )
    return reply(DriftPage(drift, None if after is None else write_cursor(after)))


@router.get(
    "/drift/claims",
    operation_id="list_drift_claims",
    summary="What events claim against what is declared",
    **gives(ClaimPage, 400),
)
def list_drift_claims(
    request: Request,
    *,
    status: Literal["OPEN", "DISMISSED"] = "OPEN",
    dataset_id: OptionalNumber = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Two datasets that an event says are one, and versions that another job announces of a
    dataset that floe writes itself. The oldest first.
    """
    with services_of(request).sessions.reading() as session:
        claims = page_claims(
            session,
            status=status,
            dataset_id=dataset_id,
            after=read_number(cursor) or 0,
            limit=limit + 1,
        )
    return reply(ClaimPage(*cut_page(claims, limit, lambda claim: claim.claim_id)))


@router.post(
    "/drift/claim/{claim_id}/accept",
    operation_id="accept_drift_claim",
    summary="Accept that two datasets are one",
    **gives(ClaimDecision, 400, 404, 409, 413, 415, takes=Decision, may_be_empty=True),
)
async def accept_drift_claim(request: Request, claim_id: Number) -> Response:
    """Join the two datasets of the claim. `/dataset/split` undoes it."""
    return await _decide(request, claim_id, ACCEPTED)


@router.post(
    "/drift/claim/{claim_id}/dismiss",
    operation_id="dismiss_drift_claim",
    summary="Dismiss a claim",
    **gives(ClaimDecision, 400, 404, 409, 413, 415, takes=Decision, may_be_empty=True),
)
async def dismiss_drift_claim(request: Request, claim_id: Number) -> Response:
    """Leave everything as it is. The same claim is not listed again."""
    return await _decide(request, claim_id, DISMISSED)


async def _decide(request: Request, claim_id: int, verdict: str) -> Response:
    given = Decision() if says_nothing(request) else await read_json(request, Decision)
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
    summary="Undo a join of two datasets",
    **gives(SplitDone, 400, 404, 409, 413, 415, takes=SplitRequest),
)
async def split_dataset(request: Request) -> Response:
    """Make a dataset again that was joined to another, by the full name that became an alias.

    Both have their own versions, states, edges and aliases again. What came after the join stays
    with the dataset that stayed.
    """
    wanted = await read_json(request, SplitRequest)
    sessions, caller = services_of(request).sessions, caller_of(request)
    return await run_in_threadpool(_write_split, sessions, caller, wanted)


def _write_split(sessions: "Sessions", caller: "Identity", wanted: SplitRequest) -> Response:
    with sessions.writing() as session:
        restored, kept = split(session, wanted.full_name, actor=caller.name, reason=wanted.comment)
        done = SplitDone(restored.dataset_id, restored.full_name, kept.dataset_id, kept.full_name)
    return reply(done)
