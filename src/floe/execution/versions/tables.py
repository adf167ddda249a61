"""Names of leases: writers of one table take turns."""

from floe.execution.workspace import Workspace
from floe.spec.identity import DatasetId


def table_lease(workspace: Workspace, dataset: str) -> str:
    """Return the name of the lease that writers of a dataset hold."""
    return f"table/{DatasetId(workspace.lake, dataset).full_name}"[:300]
