"""Read a job's environment: the API's address, the token, the spool folder.

Every variable is optional. An invalid value falls back to the default, because a wrong setting of
floe must not stop a job; it is reported once a delivery fails.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from floe.client.names import LAKE

DEFAULT_URL = "http://127.0.0.1:8765"
DEFAULT_LIMIT = 256 * 1024 * 1024
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


class Environment(NamedTuple):
    """Where reports are sent, and where they are spooled."""

    url: str
    token: str | None
    spool: Path
    spool_limit: int
    lake: str
    run_id: str | None
    recipient: str


def read_environment(
    environ: Mapping[str, str] | None = None, url: str | None = None
) -> Environment:
    """Read the FLOE_ variables and the files that `floe api` writes in the project.

    A URL passed by the job takes precedence.
    """
    environ = os.environ if environ is None else environ
    named = url or environ.get("FLOE_API_URL")
    url = named or _project_address(environ) or DEFAULT_URL
    return Environment(
        url=url,
        token=environ.get("FLOE_API_TOKEN", "").strip() or _project_token(url, environ),
        spool=_spool(environ),
        spool_limit=_size(environ.get("FLOE_SPOOL_LIMIT")) or DEFAULT_LIMIT,
        lake=environ.get("FLOE_LAKE") or LAKE,
        run_id=environ.get("FLOE_RUN_ID") or None,
        recipient=named.rstrip("/") if named else _project(environ) or DEFAULT_URL,
    )


def _spool(environ: Mapping[str, str]) -> Path:
    if named := environ.get("FLOE_SPOOL"):
        return Path(named)
    state = environ.get("XDG_STATE_HOME")
    return (Path(state) if state else _home(environ) / ".local" / "state") / "floe" / "spool"


def _home(environ: Mapping[str, str]) -> Path:
    # A job may run for a user without a home.
    return Path(environ.get("HOME") or "/tmp")  # noqa: S108


def _project_address(environ: Mapping[str, str]) -> str | None:
    """Return the address of the project's API, ignoring addresses of other hosts."""
    for folder in _state_folders(environ):
        if url := _read(folder / "address"):
            return url if _local_port(url) else None
    return None


def _project(environ: Mapping[str, str]) -> str | None:
    """Return the project folder whose API is used if no URL is set.

    Its API may listen on a different port after each start, so its spool is not tied to a port.
    """
    folders = _state_folders(environ)
    listening = [folder for folder in folders if _read(folder / "address")]
    for folder in [*listening, *folders]:
        if folder.is_dir():
            return str(folder.parent.resolve())
    return None


def _project_token(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the project's token, but only for the address stored beside it.

    No other address gets it, not even on this host: without that file our API is down, and
    whatever listens on the default port may belong to another project or user.
    """
    port = _local_port(url)
    if port is None:
        return None
    for folder in _state_folders(environ):
        if _local_port(_read(folder / "address") or "") == port:
            return _read(folder / "token")
    return None


def _state_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the .floe folders to look in: FLOE_PROJECT's, else here and above."""
    here = Path.cwd()
    named = environ.get("FLOE_PROJECT")
    folders = [Path(named)] if named else [here, *here.parents]
    return [folder / ".floe" for folder in folders]


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _local_port(url: str) -> int | None:
    """Return the port of an address on this host, or None for another host."""
    from urllib.parse import urlsplit

    try:
        address = urlsplit(url)
        port = address.port or 80
    except ValueError:
        return None
    return port if address.hostname in LOOPBACK else None


def _size(text: str | None) -> int | None:
    """Parse `500000`, `64M` or `2G` into bytes."""
    size = (text or "").strip().upper().removesuffix("B")
    unit = UNITS.get(size[-1:], 1)
    digits = size[:-1] if unit > 1 else size
    return int(digits) * unit if digits.isascii() and digits.isdigit() else None
