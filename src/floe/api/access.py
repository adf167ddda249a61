"""Authorization: the table of permissions, and its checks.

Every route has an operation id. A route whose id is not in the table cannot be built, so a new
route is closed until its permission is added here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, Protocol

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from floe.api.errors import Fault, ForbiddenError, InvalidValueError
from floe.catalog.principals import (
    DATA_CONSUMER,
    DATA_OWNER,
    DATA_STEWARD,
    INGEST,
    PLATFORM_ADMIN,
    SCOPE_ALL,
    SCOPE_INGEST,
    SCOPE_READ,
    Identity,
)
from floe.spec.nearby import suggest


@dataclass(frozen=True)
class Rule:
    """The roles that may perform an action, and the token scope it needs."""

    everywhere: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()  # only for the caller's own datasets
    scope: str = SCOPE_ALL
    public: bool = False


# Part of every scope.
ANY_SCOPE = "any"

_PEOPLE = frozenset({PLATFORM_ADMIN, DATA_STEWARD, DATA_OWNER, DATA_CONSUMER})

PUBLIC = Rule(public=True)
READ = Rule(_PEOPLE, scope=SCOPE_READ)
SEE_SELF = Rule(_PEOPLE | {INGEST}, scope=ANY_SCOPE)
SEND = Rule(frozenset({PLATFORM_ADMIN, INGEST}), scope=SCOPE_INGEST)
ASK = Rule(frozenset({PLATFORM_ADMIN, DATA_STEWARD, DATA_OWNER}))
DECIDE = Rule(frozenset({PLATFORM_ADMIN, DATA_STEWARD}))
CARE = Rule(frozenset({PLATFORM_ADMIN, DATA_STEWARD}), own=frozenset({DATA_OWNER}))
ADMINISTER = Rule(frozenset({PLATFORM_ADMIN}))
INSPECT = Rule(frozenset({PLATFORM_ADMIN, DATA_STEWARD}), scope=SCOPE_READ)

PERMISSIONS: Mapping[str, Rule] = {
    "get_root": PUBLIC,
    "get_health": PUBLIC,
    "get_readiness": PUBLIC,
    "get_openapi": PUBLIC,
    "get_login": PUBLIC,
    "open_session": PUBLIC,
    "close_session": SEE_SELF,
    "list_sessions": ADMINISTER,
    "revoke_session": ADMINISTER,
    "get_me": SEE_SELF,
    "get_metrics": READ,
    "send_event": SEND,
    "send_run_event": SEND,
    "send_batch": SEND,
    "register_dataset": SEND,
    "register_process": SEND,
    "list_datasets": READ,
    "get_dataset": READ,
    "find_dataset": READ,
    "update_dataset": CARE,
    "list_dataset_history": READ,
    "list_versions": READ,
    "find_version": READ,
    "get_version": READ,
    "retract_version": CARE,
    "list_schemas": READ,
    "diff_schemas": READ,
    "list_checks": READ,
    "list_check_results": READ,
    "get_dataset_lineage": READ,
    "find_dataset_lineage": READ,
    "get_column_lineage": READ,
    "get_impact": READ,
    "list_processes": READ,
    "get_process": READ,
    "find_process": READ,
    "get_process_lineage": READ,
    "find_process_lineage": READ,
    "list_runs": READ,
    "get_run": READ,
    "get_run_details": READ,
    "list_events": READ,
    "get_event": READ,
    "list_changes": READ,
    "submit_registration": ASK,
    "list_registrations": READ,
    "get_registration": READ,
    "approve_registration": DECIDE,
    "reject_registration": DECIDE,
    "list_owners": READ,
    "list_categories": READ,
    "list_drift": READ,
    "list_drift_claims": READ,
    "accept_drift_claim": DECIDE,
    "dismiss_drift_claim": DECIDE,
    "split_dataset": DECIDE,
    "get_sla_status": READ,
    "get_stats": READ,
    "list_audit": INSPECT,
}


class Owned(Protocol):
    """An object with an owner."""

    owner_team: str | None
    owner_email: str | None


def allows(rule: Rule, identity: Identity) -> bool:
    """Return whether a rule allows the caller this, at least on its own datasets."""
    in_scope = bool(identity.scopes & {SCOPE_ALL, rule.scope}) or rule.scope == ANY_SCOPE
    return in_scope and bool(identity.roles & (rule.everywhere | rule.own))


def check_permission(identity: Identity, action: str) -> None:
    """Raise an error unless the caller may do this, at least on its own datasets."""
    rule = PERMISSIONS[action]
    if not allows(rule, identity):
        raise _forbidden(identity, action, rule)


def check_ownership(identity: Identity, action: str, thing: Owned) -> None:
    """Raise an error unless the caller may do this with this object."""
    rule = PERMISSIONS[action]
    if not identity.roles & rule.everywhere and not (
        identity.roles & rule.own and owns(identity, thing)
    ):
        raise _forbidden(identity, action, rule)


def owns(identity: Identity, thing: Owned) -> bool:
    """Return whether an object belongs to the caller or the caller's team."""
    by_team = identity.team is not None and thing.owner_team == identity.team
    by_email = identity.email is not None and thing.owner_email == identity.email
    return by_team or by_email


def _forbidden(identity: Identity, action: str, rule: Rule) -> ForbiddenError:
    needed = [*sorted(rule.everywhere), *(f"{role} of the dataset" for role in sorted(rule.own))]
    return ForbiddenError(identity.name, action.replace("_", " "), needed)


class GuardedRoute(APIRoute):
    """A route that checks the caller's permission before anything else."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        # Synchronous endpoints wait for the catalog, so they run in a thread.
        is_blocking = not iscoroutinefunction(endpoint)
        super().__init__(path, in_thread(endpoint) if is_blocking else endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle, action = super().get_route_handler(), str(self.operation_id)
        known, public = self.query_names(), PERMISSIONS[action].public

        async def guarded(request: Request) -> Response:
            if not public:
                identity = await request.app.state.services.gate.identify(request)
                check_permission(identity, action)
                request.state.identity = identity
            if request.scope["query_string"]:
                check_query(request.query_params, known)
            return await handle(request)

        return guarded

    def query_names(self) -> frozenset[str]:
        """Return the query parameters of the route, including those in openapi_extra."""
        extra = (self.openapi_extra or {}).get("parameters", ())
        read = (parameter["name"] for parameter in extra if parameter.get("in") == "query")
        return frozenset((*_declared(self.dependant), *read))


def _declared(dependant: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _declared(inner)


def check_query(given: Iterable[str], known: Collection[str]) -> None:
    """Raise an error that lists all unknown query parameters.

    If a misspelled filter were ignored, the unfiltered result would look like a valid answer.
    """
    faults = [
        Fault(f"query.{name}", f"unknown parameter. {_hint(name, known)}")
        for name in dict.fromkeys(given)
        if name not in known
    ]
    if faults:
        raise InvalidValueError(faults)


def _hint(name: str, known: Collection[str]) -> str:
    choices = f"Valid parameters: {', '.join(sorted(known))}." if known else ""
    return suggest(name, known, choices or "This route has no parameters.")


def in_thread(endpoint: Callable[..., Response]) -> Callable[..., Awaitable[Response]]:
    """Run an endpoint in a thread of the app that received the request."""

    @wraps(endpoint)
    async def run(request: Request, **parameters: Any) -> Response:
        threads = request.app.state.services.threads
        call = partial(endpoint, request, **parameters)
        return await asyncio.get_running_loop().run_in_executor(threads, call)

    return run
