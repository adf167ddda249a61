"""One Spark Connect server for each project: started when needed, shared by all, repaired."""

import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from floe import clock
from floe.execution.jars import Progress
from floe.execution.site import Site
from floe.execution.spark.clients import open_lake
from floe.execution.spark.errors import (
    LogMissingError,
    NoOwnServerError,
    PortTakenError,
    SparkNotStartedError,
)
from floe.execution.spark.jvm import answers, end_jvm, free_port, start_jvm
from floe.execution.spark.logs import last_lines, telling_lines
from floe.execution.spark.place import ServerPlace
from floe.execution.spark.processes import count_connections, end_process, start_of, wait_until
from floe.execution.spark.settings import fingerprint, is_foreign, master
from floe.execution.spark.state import Running, forget_server, locked, read_state, write_state

START_SECONDS = 180.0
ATTEMPTS = 3
# Named so that Spark's client sends the token without TLS, which it does for this name alone.
HOST = "localhost"


@dataclass(frozen=True)
class Server:
    """A Spark Connect server to open sessions on."""

    address: str
    url: str = field(repr=False)
    """The address with its token: a secret."""
    pid: int | None = None
    log: Path | None = None
    started_at: datetime | None = None

    @property
    def ours(self) -> bool:
        return self.pid is not None


@dataclass(frozen=True)
class ServerStatus:
    """How a server is."""

    state: Literal["running", "starting", "stopped", "died", "foreign"]
    address: str | None = None
    pid: int | None = None
    master: str | None = None
    started_at: datetime | None = None
    clients: int | None = None
    outdated: bool = False
    """Whether the platform's settings have changed since it started."""
    log: Path | None = None
    said: tuple[str, ...] = ()
    """Why it died, if it could still say so."""


def ensure_server(
    site: Site, progress: Progress = lambda line: None, *, profile: str | None = None
) -> Server:
    """Return the server of a project; start it unless it runs. Callers at once share one start."""
    place = ServerPlace(site, profile)
    if is_foreign(place.compute):
        return _foreign(place)
    running = read_state(place)
    if running and running.ready and running.alive and _fits(place, running):
        return _server(place, running)
    with locked(place):
        return _ensure_alone(place, progress)


def stop_server(site: Site, *, profile: str | None = None) -> bool:
    """Stop the server; return whether there was one."""
    place = ServerPlace(site, profile)
    if is_foreign(place.compute):
        raise NoOwnServerError(str(place.compute.url))
    with locked(place):
        running = read_state(place)
        alive = running is not None and running.alive
        if running is not None and alive:
            end_process(running.pid, running.start)
        forget_server(place)
    return alive


def server_status(site: Site, *, profile: str | None = None) -> ServerStatus:
    """Say how the server is, without waiting for anybody."""
    place = ServerPlace(site, profile)
    if is_foreign(place.compute):
        return ServerStatus("foreign", address=place.compute.url)
    running = read_state(place)
    if running is None:
        return ServerStatus("stopped", log=place.log if place.log.exists() else None)
    if not running.alive:
        said = tuple(_said(place, running))
        return ServerStatus("died", started_at=running.started_at, log=place.log, said=said)
    return ServerStatus(
        "running" if running.ready else "starting",
        address=_address(running),
        pid=running.pid,
        master=running.master,
        started_at=running.started_at,
        clients=count_connections(running.port),
        outdated=_is_outdated(place, running),
        log=place.log,
    )


def find_log(site: Site, *, profile: str | None = None) -> Path:
    """Return the log of the server, running or not."""
    place = ServerPlace(site, profile)
    if is_foreign(place.compute):
        raise NoOwnServerError(str(place.compute.url))
    if not place.log.exists():
        raise LogMissingError(place.log)
    return place.log


def connect_url(url: str, token: str | None = None, session: str | None = None) -> str:
    """Return the address of a Spark Connect server with a token, or a session's number, in it."""
    given = {"token": token, "session_id": session}
    told = [f";{name}={quote(value, safe='')}" for name, value in given.items() if value]
    if not told:
        return url
    base = url if "/;" in url else f"{url.rstrip('/')}/"
    return base + "".join(told)


def _foreign(place: ServerPlace) -> Server:
    address, token = str(place.compute.url), place.compute.token
    url = connect_url(address, None if token is None else place.site.reveal(token))
    return Server(address.partition("/;")[0], url)


def _server(place: ServerPlace, running: Running) -> Server:
    address = _address(running)
    url = connect_url(address, running.token)
    return Server(address, url, running.pid, place.log, running.started_at)


def _address(running: Running) -> str:
    return f"sc://{HOST}:{running.port}"


def _is_outdated(place: ServerPlace, running: Running) -> bool:
    return running.fingerprint != fingerprint(place.site, place.profile)


def _fits(place: ServerPlace, running: Running) -> bool:
    """Tell whether a server may be used: it is as declared, or others still work on it."""
    return not _is_outdated(place, running) or count_connections(running.port) != 0


def _ensure_alone(place: ServerPlace, progress: Progress) -> Server:
    running = read_state(place)
    if running and running.alive and not _fits(place, running):
        progress("the platform's settings have changed: restarting Spark")
        end_process(running.pid, running.start)
    if running is None or not running.alive:
        forget_server(place)
        return _start(place, progress)
    # Another caller was first; or whoever started it was killed before it was ready.
    return _server(place, running if running.ready else _wait(place, running))


def _start(place: ServerPlace, progress: Progress) -> Server:
    for _ in range(ATTEMPTS - 1):
        try:
            return _start_once(place, progress)
        except PortTakenError:
            progress("the port was taken meanwhile: trying another")
    return _start_once(place, progress)


def _start_once(place: ServerPlace, progress: Progress) -> Server:
    try:
        running = _launch(place, progress)
        write_state(place, running)
        return _server(place, _wait(place, running))
    except BaseException:
        # Also when the user loses patience: what is half started is no use to anybody.
        end_jvm(place)
        forget_server(place)
        raise


def _launch(place: ServerPlace, progress: Progress) -> Running:
    port, token = free_port(), secrets.token_urlsafe(32)
    log_from = place.log.stat().st_size if place.log.exists() else 0
    pid = start_jvm(place, port, token, progress)
    return Running(
        pid=pid,
        # One that ended at once has no start, and none is running.
        start=start_of(pid) or "",
        port=port,
        token=token,
        fingerprint=fingerprint(place.site, place.profile),
        master=master(place.compute),
        started_at=clock.now(),
        ready=False,
        log_from=log_from,
    )


def _wait(place: ServerPlace, running: Running) -> Running:
    """Wait until a server answers; then its settings need no longer lie on the disk."""
    in_time = wait_until(lambda: answers(running.port) or not running.alive, START_SECONDS)
    if not running.alive or not in_time:
        happened = "ended at its start" if in_time else "was not ready in time"
        raise _not_started(place, happened, _said(place, running))
    for file in (place.properties, place.pid):
        file.unlink(missing_ok=True)
    open_lake(connect_url(_address(running), running.token), place.site.platform.lake.name)
    ready = replace(running, ready=True)
    write_state(place, ready)
    return ready


def _said(place: ServerPlace, running: Running) -> list[str]:
    log = last_lines(place.log, 200, since=running.log_from)
    return telling_lines([*log, *last_lines(place.output, 200)])


def _not_started(place: ServerPlace, happened: str, lines: list[str]) -> SparkNotStartedError:
    taken = any("BindException" in line or "already in use" in line for line in lines)
    kind = PortTakenError if taken else SparkNotStartedError
    return kind(happened, lines, place.log)
