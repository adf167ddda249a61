"""Put the API together: services, routes, what goes around them, and a clean end."""

from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio.to_thread
from fastapi import FastAPI

from floe import __version__
from floe.api.bodies import Budget
from floe.api.documents import write_document
from floe.api.doors import Door, ThreadDoor
from floe.api.doorway import Doorway
from floe.api.envelope import Envelope, packing
from floe.api.gate import ONLY_LOCAL, OpenGate, TokenGate
from floe.api.hosts import Hosts
from floe.api.metrics import Metrics
from floe.api.problems import HANDLERS
from floe.api.process_door import ProcessDoor
from floe.api.routes import ROUTERS
from floe.api.services import Services
from floe.api.watch import ChangeWatch
from floe.api.watched_door import WatchedDoor
from floe.catalog import Catalog
from floe.catalog.sessions import Sessions
from floe.client.names import LAKE
from floe.events.claims import RETENTION
from floe.events.writer import Writer
from floe.spec.dates import DEFAULT_RULES, DateRules

# Together fewer than the catalog has connections: the door needs one as well.
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
) -> FastAPI:
    """Make the API of a catalog. Without login everybody on this machine may do everything.

    Besides localhost and IP addresses, the API answers only to the names in `hosts`.

    Datasets that old jobs name without a namespace are of the lake. Events that are older than
    they are kept fill history and trigger nothing. Without a writer a thread writes events.
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
        try:
            yield
        finally:
            await services.watch.close()
            # Whatever waits is written before the last sender is answered.
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
    # No /docs: its page is made of scripts from elsewhere. The document is at /api/v1/openapi.json.
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
    # Laid out flat: to walk through nested routers would cost more than many answers do.
    for router in ROUTERS:
        app.router.routes.extend(router.routes)
    app.add_middleware(packing)
    app.add_middleware(Envelope)
    app.add_middleware(Doorway)
    return app
