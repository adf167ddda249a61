"""The open project for steps and sensors, with Spark on demand.

A step opens everything on first use and closes it at the end of the run. Sensors run every few
seconds, so they share one workspace that stays open for the life of the process: opening a large
project takes time.
"""

import atexit
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagster import DagsterExecutionInterruptedError, InitResourceContext, ResourceDefinition

from floe.execution.cancellation import Cancellation, CancelledError, stopped_by_signals
from floe.execution.recovery import repair
from floe.execution.site import Site
from floe.execution.spark.session import SharedSession, SparkSessions, offer_session
from floe.execution.workspace import Workspace, open_workspace
from floe.spec import DatasetSpec

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


RESOURCE = "floe"
"""The name of the resource."""


class Runtime:
    """An open project, as steps use it."""

    def __init__(
        self,
        site: Site,
        undeclared: Mapping[str, DatasetSpec] | None = None,
        produced: Collection[str] = (),
        models: Collection[str] = (),
    ) -> None:
        self._site = site
        self.produced, self.models = frozenset(produced), frozenset(models)
        """Datasets that the project's assets produce; `models` are those that dbt builds."""
        self._undeclared = dict(undeclared or {})
        """Datasets that assets produce and floe.yaml does not declare."""
        self._opened = ExitStack()
        self._workspace: Workspace | None = None
        self._repaired = False
        self._ambient, self._dbt = SharedSession(site), SharedSession(site)
        self._values = SharedSession(site, {"spark.sql.ansi.enabled": "true"})
        self.sparks = SparkSessions(site)

    @property
    def workspace(self) -> Workspace:
        """The project with its catalog open."""
        if self._workspace is None:
            opened = self._opened.enter_context(open_workspace(self._site))
            # Only declared datasets are registered in the catalog; steps see the others too.
            self._workspace = replace(opened, site=self._with_undeclared())
        return self._workspace

    def repaired(self) -> Workspace:
        """Return the workspace, after repairing what killed runs left."""
        if not self._repaired:
            repair(self.workspace, self.sparks)
            self._repaired = True
        return self.workspace

    @property
    def zone(self) -> str:
        return self._site.spec.timezone

    def session(self) -> "SparkSession":
        """Return the Spark session that is shared with the code of assets."""
        return self._ambient.session()

    @contextmanager
    def offered(self) -> Iterator["Runtime"]:
        """Make the platform's Spark available to the code of assets, within the block."""
        with offer_session(self._ambient):
            yield self

    @contextmanager
    def offered_to_dbt(self) -> Iterator["SparkSession"]:
        """Give dbt its own session, so that its settings do not affect the code of assets.

        It is opened before dbt starts, so that an unreachable server fails early. It stays open
        for the next step, because Spark opens the lake again for every session.
        """
        with offer_session(self._dbt, keep=True) as ambient:
            yield ambient.session()

    def session_for_values(self) -> "SparkSession":
        """Return the session for dbt's statements with values (seeds).

        dbt-spark turns ANSI mode off in its own session; here it is on, so that a value that does
        not fit its column is an error instead of NULL.
        """
        return self._values.session()

    def close(self) -> None:
        """Close the sessions and the workspace."""
        self._values.close()
        self._dbt.close()
        self._ambient.close()
        self._opened.close()
        self._workspace = None

    def _with_undeclared(self) -> Site:
        if not self._undeclared:
            return self._site
        datasets = {**self._undeclared, **self._site.spec.datasets}
        spec = self._site.spec.model_copy(update={"datasets": datasets})
        return replace(self._site, spec=spec)


@contextmanager
def open_runtime(site: Site) -> Iterator[Runtime]:
    """Open the runtime of a step, and close it at the end."""
    runtime = Runtime(site)
    try:
        yield runtime
    finally:
        runtime.close()


@contextmanager
def stoppable() -> Iterator[Cancellation]:
    """Turn Dagster's termination of a run into a clean cancellation of the step."""
    cancellation = Cancellation()
    try:
        with stopped_by_signals(cancellation):
            yield cancellation
    except CancelledError as error:
        raise DagsterExecutionInterruptedError from error


def runtime_resource(
    site: Site,
    undeclared: Mapping[str, DatasetSpec],
    produced: Collection[str],
    models: Collection[str] = (),
) -> ResourceDefinition:
    """Return the resource that opens the project for the steps of a run."""

    def start(context: InitResourceContext) -> Iterator[Any]:
        runtime = Runtime(site, undeclared, produced, models)
        try:
            with runtime.offered():
                yield runtime
        finally:
            runtime.close()

    return ResourceDefinition(
        resource_fn=start, description="The project: its catalog, its lake, and Spark."
    )


@dataclass(frozen=True)
class _SharedWorkspace:
    """An open workspace, and the stack that closes it."""

    site: Site
    workspace: Workspace
    opened: ExitStack


_lock = threading.Lock()
_shared: dict[Path, _SharedWorkspace] = {}


def shared_workspace(site: Site) -> Workspace:
    """Return the open workspace of a project; a new one if its event door broke."""
    with _lock:
        known = _shared.get(site.root)
        if known is not None and known.site is site and known.workspace.door.is_open:
            return known.workspace
        if known is not None:
            _shared.pop(site.root).opened.close()
        opened = ExitStack()
        workspace = opened.enter_context(open_workspace(site))
        _shared[site.root] = _SharedWorkspace(site, workspace, opened)
        return workspace


def close_shared_workspaces() -> None:
    """Close all shared workspaces."""
    with _lock:
        while _shared:
            _shared.popitem()[1].opened.close()


atexit.register(close_shared_workspaces)
