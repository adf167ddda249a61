"""Statistics of datasets: what queries are planned by, and how large everything is."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from floe.catalog.datasets import record_dataset_event
from floe.catalog.tables import DatasetVersion
from floe.catalog.versions import get_version_by_id, latest_ready
from floe.execution.formats.iceberg.tables import LakeTable
from floe.execution.maintenance import lake
from floe.execution.maintenance.choosing import LAKE, Say, chosen, silent
from floe.execution.maintenance.sessions import LateSession
from floe.execution.sparks import Sparks
from floe.execution.versions.places import format_of, place_of
from floe.execution.versions.tables import table_lease
from floe.execution.workspace import Workspace

LONGEST_WAIT = timedelta(hours=1)


@dataclass(frozen=True)
class Analyzed:
    """How large a dataset is."""

    dataset: str
    version: str | None
    """The newest version, which was looked at; None when there is none."""
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    statistics: str | None = None
    """The file of statistics that Iceberg wrote."""


def analyze_datasets(
    workspace: Workspace, sparks: Sparks, names: Sequence[str] | None, say: Say = silent
) -> list[Analyzed]:
    """Compute the statistics of datasets that have a version."""
    wanted = chosen(workspace, names)
    done = []
    with LateSession(sparks) as session:
        for place, name in enumerate(wanted, start=1):
            say(f"{name} ({place} of {len(wanted)})")
            done.append(_analyze(workspace, session, name))
    return done


def _analyze(workspace: Workspace, session: LateSession, name: str) -> Analyzed:
    number = workspace.dataset_id(name)
    with workspace.catalog.reading() as reading:
        version = latest_ready(reading, number)
    if version is None:
        return Analyzed(name, None)
    if workspace.dataset(name).format == LAKE:
        found = _analyze_table(workspace, session, name, version)
    else:
        found = _count_version(workspace, session, name, version)
    with workspace.catalog.writing() as writing:
        record_dataset_event(writing, number, "ANALYZED", None, asdict(found))
    return found


def _analyze_table(
    workspace: Workspace, session: LateSession, name: str, version: DatasetVersion
) -> Analyzed:
    table = LakeTable.of(workspace.lake, name)
    if not lake.exists(session.spark, table):
        return Analyzed(name, version.version_tag)
    with workspace.leases.hold(table_lease(workspace, name), wait=LONGEST_WAIT):
        statistics = lake.compute_statistics(session.spark, table)
    counted = lake.count_files(session.spark, table)
    return Analyzed(name, version.version_tag, statistics=statistics, **counted)


def _count_version(
    workspace: Workspace, session: LateSession, name: str, version: DatasetVersion
) -> Analyzed:
    """Count the rows of a version that nobody counted before, and keep the number."""
    rows = version.row_count
    if rows is None:
        place = place_of(workspace, name, version)
        frame = format_of(workspace, name).read(workspace.site, session.spark, place)
        rows = int(frame.count())
        with workspace.catalog.writing() as writing:
            get_version_by_id(writing, version.dataset_version_id).row_count = rows
    return Analyzed(name, version.version_tag, rows, bytes=version.size_bytes)
