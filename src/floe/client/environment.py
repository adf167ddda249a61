"""What a job's surroundings say: where the API is, who is calling, where to keep what waits.

Every variable is optional. A value that makes no sense gives its default and is named later, when
a report cannot be delivered: settings of floe must not stop a job.
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


class Surroundings(NamedTuple):
    """Where reports go, and where they wait."""

    url: str
    token: str | None
    spool: Path
    spool_limit: int
    lake: str
    run_id: str | None
    recipient: str


def look_around(environ: Mapping[str, str] | None = None, url: str | None = None) -> Surroundings:
    """Read the FLOE_ variables, and what `floe api` keeps in the project.

    A URL that the job names itself goes before all others.
    """
    environ = os.environ if environ is None else environ
    named = url or environ.get("FLOE_API_URL")
    url = named or _kept_address(environ) or DEFAULT_URL
    return Surroundings(
        url=url,
        token=environ.get("FLOE_API_TOKEN", "").strip() or _kept_token(url, environ),
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


def _kept_address(environ: Mapping[str, str]) -> str | None:
    """Where `floe api` of the project listens. A file may name this host and no other."""
    for folder in _state_folders(environ):
        if url := _read(folder / "address"):
            return url if _local_port(url) else None
    return None


def _project(environ: Mapping[str, str]) -> str | None:
    """The project whose API is meant where no address is named.

    Its API may listen on another port after each start, so what waits for it is not bound to one.
    """
    folders = _state_folders(environ)
    listening = [folder for folder in folders if _read(folder / "address")]
    for folder in [*listening, *folders]:
        if folder.is_dir():
            return str(folder.parent.resolve())
    return None


def _kept_token(url: str, environ: Mapping[str, str]) -> str | None:
    """The token that `floe api` keeps in the project. It goes to the address kept beside it.

    To no other, not even of this host: without that address our API is down, and whoever listens
    at the usual one may be another project's, or another user.
    """
    port = _local_port(url)
    if port is None:
        return None
    for folder in _state_folders(environ):
        if _local_port(_read(folder / "address") or "") == port:
            return _read(folder / "token")
    return None


def _state_folders(environ: Mapping[str, str]) -> list[Path]:
    """Where `floe api` may keep something: in the project that is named, else here or above."""
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
    """The port of an address of this host; None for another host's."""
    from urllib.parse import urlsplit

    try:
        address = urlsplit(url)
        port = address.port or 80
    except ValueError:
        return None
    return port if address.hostname in LOOPBACK else None


def _size(text: str | None) -> int | None:
    """`500000`, `64M` or `2G`, in bytes."""
    written = (text or "").strip().upper().removesuffix("B")
    unit = UNITS.get(written[-1:], 1)
    digits = written[:-1] if unit > 1 else written
    return int(digits) * unit if digits.isascii() and digits.isdigit() else None
