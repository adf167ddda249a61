"""Routes of the platform: health, readiness, metrics, OpenAPI, caller, statistics."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from floe import __version__
from floe.api.access import GuardedRoute
from floe.api.deps import caller_of, services_of
from floe.api.metrics import MEDIA_TYPE
from floe.api.openapi import route_docs, write_document
from floe.api.responses import reply
from floe.api.schemas.governance import Caller, Health, Readiness, Stats
from floe.catalog.database import count_rows
from floe.catalog.migrate import check_catalog, known_revisions
from floe.catalog.recording import CatalogUnavailableError
from floe.events.ingest import DoorClosedError

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["platform"])
outside = APIRouter(route_class=GuardedRoute, tags=["platform"])


@outside.get("/", operation_id="get_root", include_in_schema=False)
async def get_root() -> Response:
    """Return the version and where the API is."""
    return PlainTextResponse(
        f"floe {__version__}\nThe API is under /api/v1, its description at /api/v1/openapi.json\n"
    )


@outside.get(
    "/metrics",
    operation_id="get_metrics",
    summary="Get Prometheus metrics",
    **route_docs(str, media_type="text/plain"),
)
def get_metrics(request: Request) -> Response:
    """Requests by operation, events by outcome, and figures of the process."""
    return Response(services_of(request).metrics.show(), media_type=MEDIA_TYPE)


@router.get("/health", operation_id="get_health", summary="Get liveness", **route_docs(Health))
async def get_health() -> Response:
    """200 while the process runs, even if the catalog is not available."""
    return reply(Health("up", __version__))


@router.get(
    "/readiness", operation_id="get_readiness", summary="Get readiness", **route_docs(Readiness)
)
def get_readiness(request: Request) -> Response:
    """200 if the catalog responds, has the current schema, and accepts events.

    Otherwise 503 with the reason. If an event could not be stored, it is retried every two
    seconds, and readiness stays 503 until it has been stored.
    """
    services = services_of(request)
    if not services.door.is_open:
        raise DoorClosedError
    outage = services.door.outage
    if outage is not None:
        raise CatalogUnavailableError(outage)
    check_catalog(services.sessions.catalog)
    return reply(Readiness("ready", known_revisions()[-1]))


@router.get(
    "/openapi.json",
    operation_id="get_openapi",
    summary="Get the OpenAPI document",
    **route_docs(dict),
)
async def get_openapi(request: Request) -> Response:
    """For generating clients."""
    return reply(write_document(request.app))


@router.get("/me", operation_id="get_me", summary="Get the caller", **route_docs(Caller))
async def get_me(request: Request) -> Response:
    """Name, roles, scopes and team of the token or session."""
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


@router.get(
    "/stats", operation_id="get_stats", summary="Get catalog statistics", **route_docs(Stats)
)
def get_stats(request: Request) -> Response:
    """RowId of datasets, versions, runs, events … in the catalog."""
    with services_of(request).sessions.reading() as session:
        return reply(Stats(count_rows(session)))
