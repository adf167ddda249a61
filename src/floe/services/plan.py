"""Plan which services a project needs, how each starts, and on which port."""

import socket
import sys
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from floe.errors import FloeError
from floe.execution.site import Site
from floe.execution.spark.server import server_status
from floe.execution.spark.server_settings import is_foreign
from floe.services.dagster_services import dagster_services
from floe.services.service import AS_USER, HOST, Service, Verdict, api_is_ready, environ_of, log_of
from floe.services.spark_service import end_spark
from floe.spec.orchestration import Orchestration


class UnknownServiceError(FloeError):
    """`floe up --only` names a service that does not exist."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"Unknown service '{name}'. Choose from: {', '.join(known)}.")


class DagsterMissingError(FloeError):
    """The project needs Dagster, which is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "The project has assets or processes for Dagster, which is not installed. "
            "Run: pip install 'floe[dagster]', or leave it out with --only api,spark."
        )


class PortTakenError(FloeError):
    """The requested port is in use."""

    def __init__(self, port: int, what: str, option: str) -> None:
        super().__init__(
            f"Port {port} for {what} is in use by another program. "
            f"Free it, or choose another with {option}; {option} 0 picks a free one."
        )


SPARK, API, DAGSTER = "spark", "api", "dagster"
GROUPS = (SPARK, API, DAGSTER)
"""The values of `--only`. Dagster stands for several services that need each other."""


@dataclass(frozen=True)
class UpOptions:
    """The options of `floe up`. A port of None is the platform's."""

    only: tuple[str, ...] = ()
    port: int | None = None
    dagster_port: int | None = None


@dataclass(frozen=True)
class PortRequest:
    """A port that a service should listen on."""

    service: str
    port: int
    option: str
    required: bool
    """Set by the user: fail if it is taken, instead of choosing another."""


@dataclass(frozen=True)
class Plan:
    """The services to start, and notes to print about them."""

    services: tuple[Service, ...]
    runtime: Path
    notes: tuple[str, ...] = ()


def make_plan(site: Site, options: UpOptions) -> Plan:
    """Decide which services to start, and on which ports; start nothing."""
    notes: list[str] = []
    groups = _groups(site, options.only, notes)
    runtime = Path(tempfile.mkdtemp(prefix="floe-"))
    services: list[Service] = []
    if SPARK in groups:
        services.append(_spark(site))
    if API in groups:
        services.append(_api(site, _port(_api_port(site, options), notes)))
    if DAGSTER in groups:
        port = _port(_dagster_port(site, options), notes)
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
        notes.append(
            "Dagster is not started: the project declares no orchestration and no processes."
        )
        wanted.remove(DAGSTER)
    if DAGSTER in wanted and find_spec("dagster_webserver") is None:
        raise DagsterMissingError
    return wanted


def _port(request: PortRequest, notes: list[str]) -> int:
    port, note = choose_port(request)
    if note:
        notes.append(note)
    return port


def _api_port(site: Site, options: UpOptions) -> PortRequest:
    declared = site.platform.api
    required = options.port is not None or "port" in declared.model_fields_set
    port = declared.port if options.port is None else options.port
    return PortRequest("the API", port, "--port", required)


def _dagster_port(site: Site, options: UpOptions) -> PortRequest:
    declared = site.platform.orchestrator
    required = options.dagster_port is not None or "port" in declared.model_fields_set
    port = declared.port if options.dagster_port is None else options.dagster_port
    return PortRequest("Dagster's web interface", port, "--dagster-port", required)


def _spark(site: Site) -> Service:
    foreign = is_foreign(site.compute())
    return Service(
        name=SPARK,
        command=() if foreign else (sys.executable, "-m", "floe.services.spark_service"),
        log=log_of(site, "spark.up"),
        folder=site.root,
        environ=environ_of(site),
        umask=AS_USER,
        address=site.compute().url if foreign else None,
        probe=lambda: _look_at_spark(site),
        start_seconds=600.0,  # jars may have to be downloaded
        grace=40.0,
        clean=lambda: end_spark(site),
    )


def _look_at_spark(site: Site) -> Verdict:
    server = server_status(site)
    healthy = server.state == "running"
    return Verdict(healthy, "" if healthy else "Spark is starting", server.address)


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
        probe=api_is_ready(f"{url}/api/v1/readiness"),
    )


def choose_port(request: PortRequest) -> tuple[int, str]:
    """Return a free port, and a note if it is not the requested one."""
    if request.port != 0 and is_free(request.port):
        return request.port, ""
    if request.required and request.port != 0:
        raise PortTakenError(request.port, request.service, request.option)
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    moved = f"Port {request.port} is in use; {request.service} listens on {port} instead."
    return port, moved if request.port else ""


def is_free(port: int) -> bool:
    """Tell whether a server could listen on a port."""
    with socket.socket() as probe:
        # As servers do: ignore connections that an earlier server left in TIME_WAIT.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
