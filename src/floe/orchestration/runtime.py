"""What the code of a step works with: the project's workspace, and Spark when it asks for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from floe.execution.site import Site
from floe.execution.sparks import Sparks
from floe.execution.workspace import Workspace, open_workspace


@dataclass(frozen=True)
class Runtime:
    """A workspace that is open, and the Spark beside it."""

    workspace: Workspace
    sparks: Sparks


@contextmanager
def at_work(site: Site) -> Iterator[Runtime]:
    """Open what a step needs, and close it at the end."""
    with open_workspace(site) as workspace:
        yield Runtime(workspace, Sparks(site))
