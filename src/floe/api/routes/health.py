"""Is it up, may it be used, what has it counted, and who am I."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from floe import __version__
from floe.api.access import GuardedRoute
from floe.api.answers import reply
from floe.api.documents import gives, write_document
from floe.api.metrics import MEDIA_TYPE
from floe.api.schemas.governance import Caller, Health, Readiness, Stats
from floe.api.services import caller_of, services_of
from floe.catalog.migrate import check_catalog, known_revisions
from floe.catalog.recording import CatalogUnavailableError
from floe.catalog.stats import count_nouns
from floe.events.ingest import DoorClosedError

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["platform"])
outside = APIRouter(route_class=GuardedRoute, tags=["platform"])


@outside.get("/", operation_id="get_root", include_in_schema=False)
async def get_root() -> Response:
    """Say what this is."""
    return PlainTextResponse(
        f"floe {__version__}\nThe API is under /api/v1, its description at /api/v1/openapi.json\n"
    )


@outside.get(
    "/metrics",
    operation_id="get_metrics",
    summary="Counters for Prometheus",
    **gives(str, media_type="text/plain"),
)
def get_metrics(request: Request) -> Response:
    """Requests by operation, events by what became of them, and the process itself."""
    return Response(services_of(request).metrics.show(), media_type=MEDIA_TYPE)


@router.get("/health", operation_id="get_health", summary="Is it up", **gives(Health))
async def get_health() -> Response:
    """Answers as long as the process lives, whatever the catalog does."""
    return reply(Health("up", __version__))


@router.get(
    "/readiness", operation_id="get_readiness", summary="May it be used", **gives(Readiness)
)
def get_readiness(request: Request) -> Response:
    """Answers 200 when the catalog answers, has the tables that this floe needs, and takes events.

    Else 503 says what is missing. After an event could not be stored, it stays 503 until that
    event, which is retried every two seconds, has been stored.
    """
    services = services_of(request)
    if not services.door.is_open:
        raise DoorClosedError
    outage = services.door.outage
    if outage is not None:
        raise CatalogUnavailableError(outage)
    check_catalog(services.sessions.catalog)
    return reply(Readiness("ready", known_revisions()[-1]))


@router.get("/openapi.json", operation_id="get_openapi", summary="This document", **gives(dict))
async def get_openapi(request: Request) -> Response:
    """The OpenAPI document, from which clients are generated."""
    return reply(write_document(request.app))


@router.get("/me", operation_id="get_me", summary="Who am I", **gives(Caller))
async def get_me(request: Request) -> Response:
    """The caller as its token shows it: name, roles, team."""
    caller = caller_of(request)
    return reply(
        Caller(
            caller.name,
            sorted(caller.roles),
            sorted(caller.scopes),
            caller.team,
            caller.email,
            caller.expires_at,
        )
    )


@router.get("/stats", operation_id="get_stats", summary="How much there is", **gives(Stats))
def get_stats(request: Request) -> Response:
    """How many datasets, versions, runs, events … the catalog holds."""
    with services_of(request).sessions.reading() as session:
        return reply(Stats(count_nouns(session)))
