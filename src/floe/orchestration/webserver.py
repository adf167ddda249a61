"""Dagster's web interface as an ASGI app, read-only or writable per caller."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dagster import DagsterInstance
from dagster_webserver.version import __version__
from graphql import GraphQLError, OperationDefinitionNode, OperationType, parse

from floe.orchestration.dagster_internals import (
    WorkspaceFileTarget,
    WorkspaceProcessContext,
    WorkspaceRequestContext,
    configure_loggers,
    create_app_from_workspace_process_context,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette

MAY_CHANGE = "floe_may_change"
"""The key in a request's scope: whether the caller may change anything."""
# The defaults of dagster-webserver.
STATEMENT_MILLISECONDS, POOL_RECYCLE_SECONDS, POOL_OVERFLOW = 15_000, 3600, 20
POLL_MILLISECONDS = 2000


class _Context(WorkspaceProcessContext):
    """A workspace that is read-only for callers without write permission."""

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
    """Open Dagster's web interface for a workspace file."""
    configure_loggers(formatter="colored", log_level="INFO")
    with DagsterInstance.get() as instance:
        instance.optimize_for_webserver(STATEMENT_MILLISECONDS, POOL_RECYCLE_SECONDS, POOL_OVERFLOW)
        target = WorkspaceFileTarget([str(workspace)])
        with _Context(instance, target, version=__version__) as context:
            yield create_app_from_workspace_process_context(
                context, live_data_poll_rate=POLL_MILLISECONDS
            )


def is_mutation(query: str) -> bool:
    """Tell whether a GraphQL document has a mutation; False if invalid."""
    try:
        document = parse(query, no_location=True)
    except GraphQLError:
        return False
    operations = (
        definition
        for definition in document.definitions
        if isinstance(definition, OperationDefinitionNode)
    )
    return any(definition.operation == OperationType.MUTATION for definition in operations)
