"""Which datasets an upkeep is for."""

from collections.abc import Callable, Sequence

from floe.errors import FloeError
from floe.execution.workspace import Workspace

LAKE = "iceberg"
Say = Callable[[str], None]


class NotALakeTableError(FloeError):
    """Something was asked of a dataset that only lake tables can do."""

    def __init__(self, dataset: str, form: str, what: str) -> None:
        super().__init__(
            f"'{dataset}' has the format {form}, and only lake tables (format: {LAKE}) can be "
            f"{what}."
        )


def silent(_: str) -> None:
    """Say nothing."""


def chosen(workspace: Workspace, names: Sequence[str] | None) -> list[str]:
    """Return the datasets that were named, else all that the project declares."""
    if names is None:
        return sorted(workspace.site.spec.datasets)
    for name in names:
        workspace.dataset(name)
    return list(names)


def chosen_tables(workspace: Workspace, names: Sequence[str] | None, what: str) -> list[str]:
    """Return the lake tables among the datasets; one that was named must be one."""
    wanted = chosen(workspace, names)
    others = [name for name in wanted if workspace.dataset(name).format != LAKE]
    if names is not None and others:
        raise NotALakeTableError(others[0], workspace.dataset(others[0]).format, what)
    return [name for name in wanted if name not in others]
