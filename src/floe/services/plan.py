"""Which services a project has, how each is started, and what it needs."""

import sys
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from floe.execution.site import Site
from floe.execution.spark.server import server_status
from floe.execution.spark.settings import is_foreign
from floe.services.dagster_services import dagster_services
from floe.services.errors import DagsterMissingError, UnknownServiceError
from floe.services.ports import HOST, Wish, choose_port
from floe.services.probes import is_ready
from floe.services.service import AS_USER, Service, Verdict, environ_of, log_of
from floe.services.spark import end_spark
from floe.spec.orchestration import Orchestration

SPARK, API, DAGSTER = "spark", "api", "dagster"
GROUPS = (SPARK, API, DAGSTER)
"""What can be asked for: Dagster is several services, none of which is of use alone."""


@dataclass(frozen=True)
class Wanted:
    """What was asked for. Ports that were not are the platform's."""

    only: tuple[str, ...] = ()
    port: int | None = None
    dagster_port: int | None = None


@dataclass(frozen=True)
class Plan:
    """What is to be started, and what there is to say about it."""

    services: tuple[Service, ...]
    runtime: Path
    notes: tuple[str, ...] = ()


def make_plan(site: Site, wanted: Wanted) -> Plan:
    """Decide what is started, and where; nothing is started yet."""
    notes: list[str] = []
    groups = _groups(site, wanted.only, notes)
    runtime = Path(tempfile.mkdtemp(prefix="floe-"))
    services: list[Service] = []
    if SPARK in groups:
        services.append(_spark(site))
    if API in groups:
        services.append(_api(site, _port(_api_wish(site, wanted), notes)))
    if DAGSTER in groups:
        port = _port(_dagster_wish(site, wanted), notes)
        services += dagster_services(site, runtime, port)
    return Plan(tuple(services), runtime, tuple(notes))


def has_work(site: Site) -> bool:
    """Tell whether a project has anything for Dagster to do."""
    return bool(site.spec.processes) or site.spec.orchestration != Orchestration()


def _groups(site: Site, only: Collection[str], notes: list[str]) -> set[str]:
    for name in only:
        if name not in GROUPS:
            raise UnknownServiceError(name, list(GROUPS))
    wanted = set(only or GROUPS)
    if DAGSTER in wanted and not has_work(site):
        notes.append("Dagster is not started: the project has no orchestration and no process.")
        wanted.remove(DAGSTER)
    if DAGSTER in wanted and find_spec("dagster_webserver") is None:
        raise DagsterMissingError
    return wanted


def _port(wish: Wish, notes: list[str]) -> int:
    port, said = choose_port(wish)
    if said:
        notes.append(said)
    return port


def _api_wish(site: Site, wanted: Wanted) -> Wish:
    declared = site.platform.api
    firm = wanted.port is not None or "port" in declared.model_fields_set
    return Wish("the API", declared.port if wanted.port is None else wanted.port, "--port", firm)


def _dagster_wish(site: Site, wanted: Wanted) -> Wish:
    declared = site.platform.orchestrator
    firm = wanted.dagster_port is not None or "port" in declared.model_fields_set
    port = declared.port if wanted.dagster_port is None else wanted.dagster_port
    return Wish("Dagster's web interface", port, "--dagster-port", firm)


def _spark(site: Site) -> Service:
    foreign = is_foreign(site.compute())
    return Service(
        name=SPARK,
        command=() if foreign else (sys.executable, "-m", "floe.services.spark"),
        log=log_of(site, "spark.up"),
        folder=site.root,
        environ=environ_of(site),
        umask=AS_USER,
        address=site.compute().url if foreign else None,
        probe=lambda: _look_at_spark(site),
        start_seconds=600.0,  # its jars may have to be fetched
        grace=40.0,
        clean=lambda: end_spark(site),
    )


def _look_at_spark(site: Site) -> Verdict:
    found = server_status(site)
    well = found.state == "running"
    return Verdict(well, "" if well else "Spark is starting", found.address)


def _api(site: Site, port: int) -> Service:
    url = f"http://{HOST}:{port}"
    command = (sys.executable, "-m", "floe.cli", "api", "--host", HOST, "--port", str(port))
    return Service(
        name=API,
        command=(*command, "--project", str(site.root)),
        log=log_of(site, API),
        folder=site.root,
        environ=environ_of(site),
        address=url,
        probe=is_ready(f"{url}/api/v1/readiness"),
    )
