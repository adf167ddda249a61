"""How services are asked whether they are well. Everything is on this machine and answers soon."""

import json
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from floe.services.service import CannotTellError, Probe, Verdict

SECONDS = 5.0
MOST_READ = 100_000
SAID = 500
"""How much of an error is shown; all of it is in the log."""
LOCATIONS = """{ workspaceOrError { ... on Workspace { locationEntries { name loadStatus
  locationOrLoadError { ... on PythonError { message causes { message } } } } } } }"""
DAEMONS = "{ instance { daemonHealth { allDaemonStatuses { daemonType required healthy } } } }"

# A proxy of the company has no business between processes of one machine.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def is_ready(url: str) -> Probe:
    """Ask an API of floe whether it can be used; if it cannot, it says why."""

    def ask() -> Verdict:
        try:
            _fetch(url)
        except urllib.error.HTTPError as error:
            with error:
                waits = error.code == 503
                return Verdict(waits, f"not ready: {_detail(error)}", faulty=waits)
        except (OSError, ValueError) as error:
            return Verdict(False, f"{url} does not answer: {error}")
        return Verdict(True)

    return ask


def _detail(error: urllib.error.HTTPError) -> str:
    """The reason that a problem document gives, or the status line."""
    try:
        return str(json.loads(error.read(MOST_READ))["detail"])[:SAID]
    except (OSError, ValueError, KeyError, TypeError):
        return str(error)


def answers_socket(path: Path) -> Probe:
    """Knock at a socket of the file system."""

    def ask() -> Verdict:
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(SECONDS)
                line.connect(str(path))
        except OSError as error:
            return Verdict(False, f"{path} does not answer: {error}")
        return Verdict(True)

    return ask


def shows_project(url: str, secret: str) -> Probe:
    """Ask Dagster's web interface for the project; one that does not load is said."""

    def ask() -> Verdict:
        try:
            found = _query(url, secret, LOCATIONS)["workspaceOrError"]
        except (OSError, ValueError, KeyError) as error:
            return Verdict(False, f"{url} does not answer: {error}")
        entries = found.get("locationEntries", [])
        if not entries or any(entry["loadStatus"] == "LOADING" for entry in entries):
            return Verdict(False, "the project is being loaded")
        errors = _load_errors(entries)
        return Verdict(True, " ".join(errors), faulty=bool(errors))

    return ask


def beats(url: str, secret: str) -> Probe:
    """Ask Dagster's web interface whether the daemon has reported lately."""

    def ask() -> Verdict:
        try:
            found = _query(url, secret, DAEMONS)["instance"]["daemonHealth"]["allDaemonStatuses"]
        except (OSError, ValueError, KeyError) as error:
            raise CannotTellError from error
        silent = [one["daemonType"] for one in found if one["required"] and not one["healthy"]]
        return Verdict(not silent, f"no sign of life from {', '.join(silent)}" if silent else "")

    return ask


def _load_errors(entries: list[dict[str, Any]]) -> list[str]:
    errors = [entry["locationOrLoadError"] or {} for entry in entries]
    # The first in the chain is Dagster's own, the last is where it began.
    causes = [[error, *error.get("causes", [])][-1] for error in errors if "message" in error]
    said = [" ".join(str(cause["message"]).split())[:SAID] for cause in causes]
    return [f"the project does not load: {one}" for one in said]


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
