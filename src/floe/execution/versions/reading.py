"""Read versions for people: which one may be read, and its first rows."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floe.catalog.errors import DatasetNotFoundError
from floe.catalog.retention import StateEvent, describe_state
from floe.catalog.tables import DatasetVersion
from floe.catalog.versions import (
    ABANDONED,
    EXTERNAL,
    PUBLISHING,
    READY,
    REJECTED,
    RETRACTED,
    SUPERSEDED,
    VACUUMED,
    WRITING,
    WRITTEN,
    get_version_of,
    latest_ready,
)
from floe.errors import FloeError
from floe.execution.formats.foreign import version_read
from floe.execution.formats.registry import format_named
from floe.execution.sparks import Sparks
from floe.execution.versions.masking import Covered, cover, cover_columns
from floe.execution.versions.places import place_of
from floe.execution.workspace import Workspace
from floe.spec import DatasetSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession
    from sqlalchemy.orm import Session

AS_JSON = {
    "ignoreNullFields": "false",
    # Spark's own formats end with milliseconds.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
READABLE = frozenset({READY, SUPERSEDED, WRITTEN})
_WHY_NOT = {
    RETRACTED: "was retracted",
    REJECTED: "did not pass its checks and was rejected",
    VACUUMED: "was vacuumed, so that its data is gone",
    ABANDONED: "was never finished",
    WRITING: "is being written",
    PUBLISHING: "is being published",
    EXTERNAL: "was made or read elsewhere and never received here",
}


class NothingReadyError(FloeError):
    """A dataset has no version that could be read."""

    def __init__(self, dataset: str) -> None:
        super().__init__(
            f"'{dataset}' has no READY version. See what it has with: floe versions {dataset}"
        )


class VersionNotReadableError(FloeError):
    """A version was asked for whose state says that nobody is to read it."""

    def __init__(self, dataset: str, tag: str, state: str, event: StateEvent | None) -> None:
        said = [f"Version {tag} of '{dataset}' {_WHY_NOT.get(state, f'is {state}')}"]
        if event is not None:
            said.append(f" on {event.occurred_at:%Y-%m-%d %H:%M}Z")
            said.append(f" by {event.actor}" if event.actor else "")
            said.append(f": {event.reason}" if event.reason else "")
        said.append(f". See what can be read with: floe versions {dataset}")
        super().__init__("".join(said))


@dataclass(frozen=True)
class Preview:
    """The first rows of a version, each as a JSON object."""

    dataset: str
    tag: str
    state: str
    columns: tuple[str, ...]
    lines: Sequence[str]
    row_count: int | None
    covered: Sequence[Covered] = ()
    """The columns that this reader does not see as they are."""


def choose_version(
    session: "Session", workspace: Workspace, dataset: str, tag: str | None = None
) -> DatasetVersion:
    """Return the version asked for, else the newest READY one; refuse what is not to be read."""
    number = workspace.dataset_id(dataset)
    if tag is None:
        newest = latest_ready(session, number)
        if newest is None:
            raise NothingReadyError(dataset)
        return newest
    version = get_version_of(session, number, tag)
    if version.state not in READABLE:
        event = describe_state(session, version)
        raise VersionNotReadableError(dataset, tag, version.state, event)
    return version


def read_version(
    workspace: Workspace, spark: "SparkSession", dataset: str, tag: str | None = None
) -> "DataFrame":
    """Read a version as a frame; by default the newest READY one."""
    with workspace.catalog.reading() as session:
        version = choose_version(session, workspace, dataset, tag)
    return _frame(workspace, spark, dataset, version)


def declared_or_seen(workspace: Workspace, dataset: str) -> DatasetSpec:
    """Return what floe.yaml says of a dataset; one that only code or dbt makes is a lake table."""
    if dataset not in workspace.site.spec.datasets:
        try:
            workspace.dataset_id(dataset)
        except DatasetNotFoundError:
            return workspace.dataset(dataset)
        return DatasetSpec()
    return workspace.dataset(dataset)


def _frame(
    workspace: Workspace, spark: "SparkSession", dataset: str, version: DatasetVersion
) -> "DataFrame":
    spec = declared_or_seen(workspace, dataset)
    place = place_of(workspace, dataset, version, spec)
    return format_named(spec.format).read(workspace.site, spark, place)


def preview_version(
    workspace: Workspace,
    sparks: Sparks,
    dataset: str,
    *,
    tag: str | None = None,
    limit: int = 20,
    roles: Collection[str] = (),
) -> Preview:
    """Read the first rows of a version, as a reader in some roles may see them.

    What cannot be read is said before Spark is started.
    """
    covered_for(workspace, dataset, (), roles)
    with workspace.catalog.reading() as session:
        version = choose_version(session, workspace, dataset, tag)
    with sparks.session() as spark:
        return _first_rows(workspace, spark, dataset, version, limit=limit, roles=roles)


def covered_for(
    workspace: Workspace, dataset: str, columns: Sequence[str], roles: Collection[str]
) -> list[Covered]:
    """Say which columns a reader may not see; refuse a dataset that is restricted for it."""
    governance = workspace.site.spec.governance
    spec = declared_or_seen(workspace, dataset)
    return cover_columns(governance, dataset, spec, columns, roles)


def _first_rows(
    workspace: Workspace,
    spark: "SparkSession",
    dataset: str,
    version: DatasetVersion,
    *,
    limit: int,
    roles: Collection[str],
) -> Preview:
    from pyspark.sql import functions as F  # noqa: N812

    with version_read(workspace.site, dataset, version.version_tag):
        data = _frame(workspace, spark, dataset, version)
        covered = covered_for(workspace, dataset, data.columns, roles)
        frame = cover(data.limit(limit), covered)
        # Spark writes every type as JSON by itself, decimals without loss.
        whole = F.to_json(F.struct("*"), AS_JSON)
        rows = frame.select(whole).collect()
    return Preview(
        dataset,
        version.version_tag,
        version.state,
        tuple(frame.columns),
        [row[0] for row in rows],
        version.row_count,
        covered,
    )
