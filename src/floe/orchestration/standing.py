"""The workspace that sensors share: opened with the first look, and kept as long as the process.

A sensor looks every few seconds. What it costs to open a project grows with the project.
"""

import atexit
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from floe.execution.site import Site
from floe.execution.workspace import Workspace, open_workspace


@dataclass(frozen=True)
class _Standing:
    """A workspace that stands open, and what closes it."""

    site: Site
    workspace: Workspace
    opened: ExitStack


_lock = threading.Lock()
_standing: dict[Path, _Standing] = {}


def standing_workspace(site: Site) -> Workspace:
    """Return the open workspace of a project; a new one if its event door broke."""
    with _lock:
        known = _standing.get(site.root)
        if known is not None and known.site is site and known.workspace.door.is_open:
            return known.workspace
        if known is not None:
            _standing.pop(site.root).opened.close()
        opened = ExitStack()
        workspace = opened.enter_context(open_workspace(site))
        _standing[site.root] = _Standing(site, workspace, opened)
        return workspace


def close_standing() -> None:
    """Close every workspace that stands open."""
    with _lock:
        while _standing:
            _standing.popitem()[1].opened.close()


atexit.register(close_standing)
