"""One Spark Connect server per project: started on demand, shared, restarted."""

import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from floe import clock
from floe.execution.jars import Progress
from floe.execution.os_processes import count_connections, end_process, start_of, wait_until
from floe.execution.site import Site
from floe.execution.spark.clients import initialize_lake
from floe.execution.spark.errors import (
    LogMissingError,
    NoOwnServerError,
    PortTakenError,
    SparkNotStartedError,
)
from floe.execution.spark.jvm import answers, end_jvm, free_port, start_jvm
from floe.execution.spark.server_files import (
    Running,
    ServerFiles,
    error_lines,
    forget_server,
    last_lines,
    locked,
    read_state,
    write_state,
)
from floe.execution.spark.server_settings import fingerprint, is_foreign, master

START_SECONDS = 180.0
ATTEMPTS = 3
# Spark's client sends a token without TLS only to this host name.
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
    """The state of a server."""

    state: Literal["running", "starting", "stopped", "died", "foreign"]
    address: str | None = None
    pid: int | None = None
    master: str | None = None
    started_at: datetime | None = None
    clients: int | None = None
    outdated: bool = False
    """Whether the platform's settings have changed since it started."""
    log: Path | None = None
    last_output: tuple[str, ...] = ()
    """Its last error lines, if it died."""


def ensure_server(
    site: Site, progress: Progress = lambda line: None, *, profile: str | None = None
) -> Server:
    """Return the project's server; start it if needed. Concurrent callers share it."""
    files = ServerFiles(site, profile)
    if is_foreign(files.compute):
        return _foreign(files)
    running = read_state(files)
    if running and running.ready and running.alive and _is_usable(files, running):
        return _server(files, running)
    with locked(files):
        return _ensure_locked(files, progress)


def stop_server(site: Site, *, profile: str | None = None) -> bool:
    """Stop the server; return whether it was running."""
    files = ServerFiles(site, profile)
    if is_foreign(files.compute):
        raise NoOwnServerError(str(files.compute.url))
    with locked(files):
        running = read_state(files)
        alive = running is not None and running.alive
        if running is not None and alive:
            end_process(running.pid, running.start)
        forget_server(files)
    return alive


def server_status(site: Site, *, profile: str | None = None) -> ServerStatus:
    """Return the state of the server, without waiting for locks."""
    files = ServerFiles(site, profile)
    if is_foreign(files.compute):
        return ServerStatus("foreign", address=files.compute.url)
    running = read_state(files)
    if running is None:
        return ServerStatus("stopped", log=files.log if files.log.exists() else None)
    if not running.alive:
        last_output = tuple(_last_errors(files, running))
        return ServerStatus(
            "died", started_at=running.started_at, log=files.log, last_output=last_output
        )
    return ServerStatus(
        "running" if running.ready else "starting",
        address=_address(running),
        pid=running.pid,
        master=running.master,
        started_at=running.started_at,
        clients=count_connections(running.port),
        outdated=_is_outdated(files, running),
        log=files.log,
    )


def find_log(site: Site, *, profile: str | None = None) -> Path:
    """Return the log file of the server, whether it runs or not."""
    files = ServerFiles(site, profile)
    if is_foreign(files.compute):
        raise NoOwnServerError(str(files.compute.url))
    if not files.log.exists():
        raise LogMissingError(files.log)
    return files.log


def connect_url(url: str, token: str | None = None, session: str | None = None) -> str:
    """Add a token or a session id to the address of a Spark Connect server."""
    given = {"token": token, "session_id": session}
    parameters = [f";{name}={quote(value, safe='')}" for name, value in given.items() if value]
    if not parameters:
        return url
    base = url if "/;" in url else f"{url.rstrip('/')}/"
    return base + "".join(parameters)


def _foreign(files: ServerFiles) -> Server:
    address, token = str(files.compute.url), files.compute.token
    url = connect_url(address, None if token is None else files.site.reveal(token))
    return Server(address.partition("/;")[0], url)


def _server(files: ServerFiles, running: Running) -> Server:
    address = _address(running)
    url = connect_url(address, running.token)
    return Server(address, url, running.pid, files.log, running.started_at)


def _address(running: Running) -> str:
    return f"sc://{HOST}:{running.port}"


def _is_outdated(files: ServerFiles, running: Running) -> bool:
    return running.fingerprint != fingerprint(files.site, files.profile)


def _is_usable(files: ServerFiles, running: Running) -> bool:
    """Tell whether a server matches its settings, or is still in use by clients."""
    return not _is_outdated(files, running) or count_connections(running.port) != 0


def _ensure_locked(files: ServerFiles, progress: Progress) -> Server:
    running = read_state(files)
    if running and running.alive and not _is_usable(files, running):
        progress("the platform's settings have changed: restarting Spark")
        end_process(running.pid, running.start)
    if running is None or not running.alive:
        forget_server(files)
        return _start(files, progress)
    # Another caller started it, or was killed before it was ready.
    return _server(files, running if running.ready else _wait(files, running))


def _start(files: ServerFiles, progress: Progress) -> Server:
    for _ in range(ATTEMPTS - 1):
        try:
            return _start_once(files, progress)
        except PortTakenError:
            progress("the port is in use: trying another")
    return _start_once(files, progress)


def _start_once(files: ServerFiles, progress: Progress) -> Server:
    try:
        running = _launch(files, progress)
        write_state(files, running)
        return _server(files, _wait(files, running))
    except BaseException:
        # Also on Ctrl+C: a half-started server is useless.
        end_jvm(files)
        forget_server(files)
        raise


def _launch(files: ServerFiles, progress: Progress) -> Running:
    port, token = free_port(), secrets.token_urlsafe(32)
    log_from = files.log.stat().st_size if files.log.exists() else 0
    pid = start_jvm(files, port, token, progress)
    return Running(
        pid=pid,
        # A process that exited at once has no start time, so it counts as not running.
        start=start_of(pid) or "",
        port=port,
        token=token,
        fingerprint=fingerprint(files.site, files.profile),
        master=master(files.compute),
        started_at=clock.now(),
        ready=False,
        log_from=log_from,
    )


def _wait(files: ServerFiles, running: Running) -> Running:
    """Wait until a server answers, then remove its settings from the disk."""
    in_time = wait_until(lambda: answers(running.port) or not running.alive, START_SECONDS)
    if not running.alive or not in_time:
        problem = (
            "exited during its start"
            if in_time
            else f"was not ready after {START_SECONDS:.0f} seconds"
        )
        raise _not_started(files, problem, _last_errors(files, running))
    for file in (files.properties, files.pid):
        file.unlink(missing_ok=True)
    initialize_lake(connect_url(_address(running), running.token), files.site.platform.lake.name)
    ready = replace(running, ready=True)
    write_state(files, ready)
    return ready


def _last_errors(files: ServerFiles, running: Running) -> list[str]:
    log = last_lines(files.log, 200, since=running.log_from)
    return error_lines([*log, *last_lines(files.output, 200)])


def _not_started(files: ServerFiles, problem: str, lines: list[str]) -> SparkNotStartedError:
    taken = any("BindException" in line or "already in use" in line for line in lines)
    kind = PortTakenError if taken else SparkNotStartedError
    return kind(problem, lines, files.log)
