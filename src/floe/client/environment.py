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


def look_around(environ: Mapping[str, str] | None = None) -> Surroundings:
    """Read the FLOE_ variables, and the project's own token where the API is on this host."""
    environ = os.environ if environ is None else environ
    url = environ.get("FLOE_API_URL") or _local_address(environ) or DEFAULT_URL
    return Surroundings(
        url=url,
        token=environ.get("FLOE_API_TOKEN", "").strip() or _local_token(url, environ),
        spool=_spool(environ),
        spool_limit=_size(environ.get("FLOE_SPOOL_LIMIT")) or DEFAULT_LIMIT,
        lake=environ.get("FLOE_LAKE") or LAKE,
        run_id=environ.get("FLOE_RUN_ID") or None,
    )


def _spool(environ: Mapping[str, str]) -> Path:
    if named := environ.get("FLOE_SPOOL"):
        return Path(named)
    state = environ.get("XDG_STATE_HOME")
    return (Path(state) if state else _home(environ) / ".local" / "state") / "floe" / "spool"


def _home(environ: Mapping[str, str]) -> Path:
    # A job may run for a user without a home.
    return Path(environ.get("HOME") or "/tmp")  # noqa: S108


def _local_address(environ: Mapping[str, str]) -> str | None:
    """Where `floe api` of the project listens. A file may name this host and no other."""
    url = _kept(environ, "address")
    return url if url and _is_local(url) else None


def _local_token(url: str, environ: Mapping[str, str]) -> str | None:
    """The token that `floe api` keeps in the project. It goes to this host and to no other."""
    return _kept(environ, "token") if _is_local(url) else None


def _kept(environ: Mapping[str, str], name: str) -> str | None:
    """Read what `floe api` keeps in the project, here or above."""
    here = Path.cwd()
    named = environ.get("FLOE_PROJECT")
    folders = [Path(named)] if named else [here, *here.parents]
    for folder in folders:
        try:
            return (folder / ".floe" / name).read_text(encoding="ascii").strip() or None
        except (OSError, UnicodeDecodeError):
            continue
    return None


def _is_local(url: str) -> bool:
    from urllib.parse import urlsplit

    try:
        return urlsplit(url).hostname in LOOPBACK
    except ValueError:
        return False


def _size(text: str | None) -> int | None:
    """`500000`, `64M` or `2G`, in bytes."""
    written = (text or "").strip().upper().removesuffix("B")
    unit = UNITS.get(written[-1:], 1)
    digits = written[:-1] if unit > 1 else written
    return int(digits) * unit if digits.isascii() and digits.isdigit() else None
