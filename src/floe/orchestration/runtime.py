"""What the code of a step works with: the project's workspace, and Spark when it asks for it.

All of it is opened when it is first used, and closed at the end of the run.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dagster import DagsterExecutionInterruptedError, InitResourceContext, ResourceDefinition

from floe.execution.cancelling import Cancellation, CancelledError
from floe.execution.resuming import repair
from floe.execution.site import Site
from floe.execution.spark.ambient import Ambient, offered
from floe.execution.sparks import Sparks
from floe.execution.stopping import stopped_by_signals
from floe.execution.workspace import Workspace, open_workspace
from floe.spec import DatasetSpec

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

RESOURCE = "floe"
"""The resource that steps find it under."""


class Runtime:
    """A project at work."""

    def __init__(
        self,
        site: Site,
        undeclared: Mapping[str, DatasetSpec] | None = None,
        made: Collection[str] = (),
        models: Collection[str] = (),
    ) -> None:
        self._site = site
        self.made, self.models = frozenset(made), frozenset(models)
        """Datasets that assets of the project make, and those of them that dbt does."""
        self._undeclared = dict(undeclared or {})
        """Datasets that assets make and floe.yaml does not declare."""
        self._opened = ExitStack()
        self._workspace: Workspace | None = None
        self._repaired = False
        self._ambient, self._dbt = Ambient(site), Ambient(site)
        self._values = Ambient(site, {"spark.sql.ansi.enabled": "true"})
        self.sparks = Sparks(site)

    @property
    def workspace(self) -> Workspace:
        """The project with its catalog open."""
        if self._workspace is None:
            opened = self._opened.enter_context(open_workspace(self._site))
            # The catalog is told of what is declared; steps know what is made besides.
            self._workspace = replace(opened, site=self._with_undeclared())
        return self._workspace

    def repaired(self) -> Workspace:
        """The workspace, once what killed runs left is brought to an end."""
        if not self._repaired:
            repair(self.workspace, self.sparks)
            self._repaired = True
        return self.workspace

    @property
    def zone(self) -> str:
        return self._site.spec.timezone

    def session(self) -> "SparkSession":
        """The session that code of assets gets as well."""
        return self._ambient.session()

    @contextmanager
    def offered(self) -> Iterator["Runtime"]:
        """Let code of assets reach the platform's Spark, for a while."""
        with offered(self._ambient):
            yield self

    @contextmanager
    def offered_to_dbt(self) -> Iterator["SparkSession"]:
        """Offer dbt a session of its own: what it sets there, code of assets does not see.

        It is opened before dbt is, so that nobody waits for a server that does not answer; and it
        stays for the next step, because Spark opens the lake anew for every session.
        """
        with offered(self._dbt, keep=True) as ambient:
            yield ambient.session()

    def session_for_values(self) -> "SparkSession":
        """Return the session for dbt's statements with values: seeds.

        dbt-spark turns ANSI mode off in its own session; here it is on, so that a value that does
        not fit its column is an error and not NULL.
        """
        return self._values.session()

    def close(self) -> None:
        """Close what was opened."""
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
def at_work(site: Site) -> Iterator[Runtime]:
    """Open what a step needs, and close it at the end."""
    runtime = Runtime(site)
    try:
        yield runtime
    finally:
        runtime.close()


@contextmanager
def stoppable() -> Iterator[Cancellation]:
    """Let the end that Dagster wants for a run end the work in good order, and then the step."""
    cancellation = Cancellation()
    try:
        with stopped_by_signals(cancellation):
            yield cancellation
    except CancelledError as error:
        raise DagsterExecutionInterruptedError from error


def runtime_resource(
    site: Site,
    undeclared: Mapping[str, DatasetSpec],
    made: Collection[str],
    models: Collection[str] = (),
) -> ResourceDefinition:
    """Return the resource that opens the project for the steps of a run."""

    def start(context: InitResourceContext) -> Iterator[Any]:
        runtime = Runtime(site, undeclared, made, models)
        try:
            with runtime.offered():
                yield runtime
        finally:
            runtime.close()

    return ResourceDefinition(
        resource_fn=start, description="The project: its catalog, its lake, and Spark."
    )
