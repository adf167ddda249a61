"""Dagster's web interface as an app, which lets each caller change things or only look."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dagster import DagsterInstance
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._utils.log import configure_loggers
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.version import __version__
from graphql import GraphQLError, OperationDefinitionNode, OperationType, parse

if TYPE_CHECKING:
    from starlette.applications import Starlette

MAY_CHANGE = "floe_may_change"
"""The key of a request's scope that says whether its sender may change anything."""
# As dagster-webserver has them by default.
STATEMENT_MILLISECONDS, POOL_RECYCLE_SECONDS, POOL_OVERFLOW = 15_000, 3600, 20
POLL_MILLISECONDS = 2000


class _Context(WorkspaceProcessContext):
    """A workspace that is read-only for those who may not change anything."""

    def create_request_context(self, source: object | None = None) -> WorkspaceRequestContext:
        scope = getattr(source, "scope", {})
        return WorkspaceRequestContext(
            instance=self._instance,
            current_workspace=self.get_current_workspace(),
            process_context=self,
            version=self.version,
            source=source,
            read_only=not scope.get(MAY_CHANGE, False),
        )


@contextmanager
def open_web_app(workspace: Path) -> Iterator["Starlette"]:
    """Open Dagster's web interface for the definitions that a workspace file names."""
    configure_loggers(formatter="colored", log_level="INFO")
    with DagsterInstance.get() as instance:
        instance.optimize_for_webserver(STATEMENT_MILLISECONDS, POOL_RECYCLE_SECONDS, POOL_OVERFLOW)
        target = WorkspaceFileTarget([str(workspace)])
        with _Context(instance, target, version=__version__) as context:
            yield create_app_from_workspace_process_context(
                context, live_data_poll_rate=POLL_MILLISECONDS
            )


def is_mutation(query: str) -> bool:
    """Tell whether a GraphQL document holds a mutation. Dagster itself answers an invalid one."""
    try:
        document = parse(query, no_location=True)
    except GraphQLError:
        return False
    operations = (one for one in document.definitions if isinstance(one, OperationDefinitionNode))
    return any(one.operation == OperationType.MUTATION for one in operations)
