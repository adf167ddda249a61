"""A service: the command to run, and the probes that check its health."""

import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floe.execution.site import Site


@dataclass(frozen=True)
class Verdict:
    """The result of a probe."""

    healthy: bool
    message: str = ""
    address: str | None = None
    """The service's address, if it is only known once it runs."""
    faulty: bool = False
    """The service runs, but what it serves does not work; a restart would not help."""


class InconclusiveProbeError(Exception):
    """The probe gave no result, so the service's state does not change."""


HOST = "127.0.0.1"
Probe = Callable[[], Verdict]
PRIVATE, AS_USER = 0o077, -1
"""A umask: files for their owner only, or the umask of the user who runs floe."""


def always_healthy() -> Verdict:
    """Count a running process as healthy."""
    return Verdict(True)


def no_cleanup() -> None:
    """Clean up nothing."""


@dataclass(frozen=True)
class Service:
    """A process to run. Without a command it is run by others, and only shown."""

    name: str
    command: tuple[str, ...]
    log: Path
    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The complete environment; it may hold secrets."""
    needs: tuple[str, ...] = ()
    """Services that must be ready before it starts."""
    address: str | None = None
    probe: Probe = always_healthy
    umask: int = PRIVATE
    """AS_USER for services that write the user's data."""
    once: bool = False
    """Whether it does its work and ends."""
    start_seconds: float = 180.0
    """Seconds after which a start that is not ready counts as failed."""
    grace: float = 15.0
    """Seconds it may take to stop before it is killed."""
    clean: Callable[[], None] = no_cleanup
    """Called after it has stopped for good, to remove what it left."""


def log_of(site: Site, name: str) -> Path:
    """Return the path of a service's log file."""
    return site.state_dir / "logs" / f"{name}.log"


def environ_of(site: Site) -> dict[str, str]:
    """Return the environment that services of a project share."""
    # Unbuffered, so that output reaches the log at once.
    return {**os.environ, "FLOE_PROJECT": str(site.root), "PYTHONUNBUFFERED": "1"}


SECONDS = 5.0
MOST_READ = 100_000
LONGEST_MESSAGE = 500
"""Characters of an error that are shown; the log has all of it."""
LOCATIONS = """{ workspaceOrError { ... on Workspace { locationEntries { name loadStatus
  locationOrLoadError { ... on PythonError { message causes { message } } } } } } }"""
DAEMONS = "{ instance { daemonHealth { allDaemonStatuses { daemonType required healthy } } } }"

# Never use the company's proxy between processes of one machine.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def api_is_ready(url: str) -> Probe:
    """Probe floe's API: is it ready, and if not, why?"""

    def probe() -> Verdict:
        try:
            _fetch(url)
        except urllib.error.HTTPError as error:
            with error:
                not_ready = error.code == 503
                return Verdict(not_ready, f"not ready: {_detail(error)}", faulty=not_ready)
        except (OSError, ValueError) as error:
            return Verdict(False, f"{url} does not answer: {error}")
        return Verdict(True)

    return probe


def _detail(error: urllib.error.HTTPError) -> str:
    """Return the reason from the problem document, or the status line."""
    try:
        return str(json.loads(error.read(MOST_READ))["detail"])[:LONGEST_MESSAGE]
    except (OSError, ValueError, KeyError, TypeError):
        return str(error)


def answers_socket(path: Path) -> Probe:
    """Probe a Unix socket: does it accept connections?"""

    def probe() -> Verdict:
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(SECONDS)
                client.connect(str(path))
        except OSError as error:
            return Verdict(False, f"{path} does not answer: {error}")
        return Verdict(True)

    return probe


def loads_project(url: str, secret: str) -> Probe:
    """Probe Dagster's web interface: does it load the project, and if not, why?"""

    def probe() -> Verdict:
        try:
            workspace = _query(url, secret, LOCATIONS)["workspaceOrError"]
        except (OSError, ValueError, KeyError) as error:
            return Verdict(False, f"{url} does not answer: {error}")
        entries = workspace.get("locationEntries", [])
        if not entries or any(entry["loadStatus"] == "LOADING" for entry in entries):
            return Verdict(False, "the project is loading")
        errors = _load_errors(entries)
        return Verdict(True, " ".join(errors), faulty=bool(errors))

    return probe


def has_heartbeat(url: str, secret: str) -> Probe:
    """Probe the daemon: Dagster's web interface knows its last heartbeats."""

    def probe() -> Verdict:
        try:
            health = _query(url, secret, DAEMONS)["instance"]["daemonHealth"]
            daemons = health["allDaemonStatuses"]
        except (OSError, ValueError, KeyError) as error:
            raise InconclusiveProbeError from error
        silent = [
            daemon["daemonType"]
            for daemon in daemons
            if daemon["required"] and not daemon["healthy"]
        ]
        return Verdict(not silent, f"no heartbeat from {', '.join(silent)}" if silent else "")

    return probe


def _load_errors(entries: list[dict[str, Any]]) -> list[str]:
    errors = [entry["locationOrLoadError"] or {} for entry in entries]
    # The first error of the chain is Dagster's own, the last is the root cause.
    causes = [[error, *error.get("causes", [])][-1] for error in errors if "message" in error]
    messages = [" ".join(str(cause["message"]).split())[:LONGEST_MESSAGE] for cause in causes]
    return [f"the project does not load: {message}" for message in messages]


def _query(url: str, secret: str, query: str) -> Any:
    body = json.dumps({"query": query}).encode()
    answer = json.loads(_fetch(f"{url}/graphql", body, secret))
    if not answer.get("data"):
        raise ValueError(str(answer.get("errors")))
    return answer["data"]


def _fetch(url: str, body: bytes | None = None, secret: str = "") -> bytes:
    headers = {"Content-Type": "application/json"} if body else {}
    if secret:
        headers["Authorization"] = f"Bearer {secret}"
    request = urllib.request.Request(url, body, headers)  # noqa: S310
    with _opener.open(request, timeout=SECONDS) as answer:
        content: bytes = answer.read()
    return content
