"""Create the API app: services, routes, middleware and shutdown."""

from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio.to_thread
from fastapi import FastAPI

from floe import __version__
from floe.api.bodies import Budget
from floe.api.deps import Services
from floe.api.doors import Door, ThreadDoor, WatchedDoor
from floe.api.gate import ONLY_LOCAL, OpenGate, TokenGate
from floe.api.hosts import Hosts
from floe.api.metrics import Metrics
from floe.api.middleware import EventFastPath, ResponseMiddleware, compress_responses
from floe.api.openapi import write_document
from floe.api.process_door import ProcessDoor
from floe.api.responses import HANDLERS
from floe.api.routes import ROUTERS
from floe.api.routes.changes import ChangeWatch
from floe.catalog import Catalog
from floe.catalog.database import Sessions
from floe.client.names import LAKE
from floe.events.claim_reader import RETENTION
from floe.events.forwarding import Forwarder
from floe.events.writer import Writer
from floe.spec.dates import DEFAULT_RULES, DateRules

# Together fewer than the catalog's connections, because the event door needs one too.
READERS, OTHERS = 8, 5

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def create_app(
    catalog: Catalog,
    *,
    login: bool = True,
    hosts: Hosts = ONLY_LOCAL,
    lake: str = LAKE,
    retention: timedelta = RETENTION,
    dates: DateRules = DEFAULT_RULES,
    writer: Writer | None = None,
    forwarders: Sequence[Forwarder] = (),
) -> FastAPI:
    """Create the API app of a catalog.

    Without `login`, everybody on this machine may do everything. Apart from localhost and IP
    addresses, the API accepts only the host names in `hosts`. Datasets that legacy jobs report
    without a namespace get the namespace `lake`. Events older than `retention` only add to the
    history and trigger nothing. Without a `writer` process, a thread writes events.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = OTHERS
        door: Door
        if writer is None:
            door = ThreadDoor(catalog, dates)
        else:
            door = await ProcessDoor(writer, catalog, dates).open()
        services = _make_services(
            catalog, door, login=login, hosts=hosts, lake=lake, retention=retention
        )
        app.state.services = services
        for forwarder in forwarders:
            forwarder.start()
        try:
            yield
        finally:
            for forwarder in forwarders:
                await anyio.to_thread.run_sync(forwarder.stop)
            await services.watch.close()
            # Pending events are written before their senders get a response.
            await services.door.close()
            services.threads.shutdown()
            services.sessions.close()

    return _assemble(lifespan)


def describe_api() -> dict[str, Any]:
    """Return the OpenAPI document, without a catalog."""
    return write_document(_assemble(None))


def _make_services(
    catalog: Catalog,
    door: Door,
    *,
    login: bool,
    hosts: Hosts,
    lake: str,
    retention: timedelta,
) -> Services:
    sessions = Sessions(catalog)
    return Services(
        sessions=sessions,
        door=WatchedDoor(door),
        gate=TokenGate(sessions, hosts=hosts) if login else OpenGate(),
        metrics=Metrics(),
        watch=ChangeWatch(sessions),
        budget=Budget(),
        threads=ThreadPoolExecutor(READERS, thread_name_prefix="reader"),
        hosts=hosts,
        lake=lake,
        retention=retention,
    )


def _assemble(lifespan: Lifespan | None) -> FastAPI:
    # No /docs, because it loads scripts from other sites. See /api/v1/openapi.json instead.
    app = FastAPI(
        title="floe",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        exception_handlers=HANDLERS,
    )
    # A flat list, because walking nested routers takes longer than many responses.
    for router in ROUTERS:
        app.router.routes.extend(router.routes)
    app.add_middleware(compress_responses)
    app.add_middleware(ResponseMiddleware)
    app.add_middleware(EventFastPath)
    return app
