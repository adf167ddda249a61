"""Compact lake tables and compute statistics of datasets."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from floe.catalog.datasets import record_dataset_event
from floe.catalog.tables import DatasetVersion
from floe.catalog.version_queries import get_version_by_id, latest_ready
from floe.errors import FloeError
from floe.execution.formats.lake_tables import LakeTable
from floe.execution.maintenance import lake
from floe.execution.spark.session import LazySession, SparkSessions
from floe.execution.versions.version_access import format_of, stored_version, table_lease
from floe.execution.workspace import Workspace

LAKE = "iceberg"
Say = Callable[[str], None]

MAX_WAIT = timedelta(hours=1)
MIN_INPUT_FILES = 5


class NotALakeTableError(FloeError):
    """The operation works only on lake tables."""

    def __init__(self, dataset: str, form: str, what: str) -> None:
        super().__init__(
            f"'{dataset}' has the format {form}, but only lake tables (format: {LAKE}) can be "
            f"{what}."
        )


def silent(_: str) -> None:
    """Ignore progress messages."""


def select_datasets(workspace: Workspace, names: Sequence[str] | None) -> list[str]:
    """Return the named datasets, or all datasets of the project."""
    if names is None:
        return sorted(workspace.site.spec.datasets)
    for name in names:
        workspace.dataset(name)
    return list(names)


def select_lake_tables(workspace: Workspace, names: Sequence[str] | None, what: str) -> list[str]:
    """Return the lake tables among the datasets; raise if a named one is not."""
    wanted = select_datasets(workspace, names)
    others = [name for name in wanted if workspace.dataset(name).format != LAKE]
    if names is not None and others:
        raise NotALakeTableError(others[0], workspace.dataset(others[0]).format, what)
    return [name for name in wanted if name not in others]


@dataclass(frozen=True)
class Compacted:
    """The result of compacting a table."""

    dataset: str
    files_before: int
    """The number of files that were rewritten."""
    files_after: int
    """The number of files written instead."""
    bytes: int


def compact_datasets(
    workspace: Workspace,
    sparks: SparkSessions,
    names: Sequence[str] | None,
    min_input_files: int = MIN_INPUT_FILES,
    say: Say = silent,
) -> list[Compacted]:
    """Compact lake tables, each under its lease: a concurrent write would be lost."""
    wanted = select_lake_tables(workspace, names, "compacted")
    done = []
    with LazySession(sparks) as session:
        for index, name in enumerate(wanted, start=1):
            say(f"{name} ({index} of {len(wanted)})")
            with workspace.leases.hold(table_lease(workspace, name), wait=MAX_WAIT) as lease:
                lease.check()
                done.append(_compact(workspace, session, name, min_input_files))
    return done


def _compact(
    workspace: Workspace, session: LazySession, name: str, min_input_files: int
) -> Compacted:
    table = LakeTable.of(workspace.lake, name)
    if not lake.exists(session.spark, table):
        return Compacted(name, 0, 0, 0)
    counted = lake.rewrite_data_files(session.spark, table, min_input_files)
    if counted["files_before"]:
        dataset_id = workspace.dataset_id(name)
        with workspace.catalog.writing() as writing:
            record_dataset_event(writing, dataset_id, "COMPACTED", None, counted)
    return Compacted(name, **counted)


@dataclass(frozen=True)
class Analyzed:
    """The size of a dataset."""

    dataset: str
    version: str | None
    """The newest READY version, which was analyzed; None if there is none."""
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    statistics: str | None = None
    """The statistics file that Iceberg wrote."""


def analyze_datasets(
    workspace: Workspace, sparks: SparkSessions, names: Sequence[str] | None, say: Say = silent
) -> list[Analyzed]:
    """Compute the statistics of the newest version of each dataset."""
    wanted = select_datasets(workspace, names)
    done = []
    with LazySession(sparks) as session:
        for index, name in enumerate(wanted, start=1):
            say(f"{name} ({index} of {len(wanted)})")
            done.append(_analyze(workspace, session, name))
    return done


def _analyze(workspace: Workspace, session: LazySession, name: str) -> Analyzed:
    dataset_id = workspace.dataset_id(name)
    with workspace.catalog.reading() as reading:
        version = latest_ready(reading, dataset_id)
    if version is None:
        return Analyzed(name, None)
    if workspace.dataset(name).format == LAKE:
        analyzed = _analyze_table(workspace, session, name, version)
    else:
        analyzed = _count_version(workspace, session, name, version)
    with workspace.catalog.writing() as writing:
        record_dataset_event(writing, dataset_id, "ANALYZED", None, asdict(analyzed))
    return analyzed


def _analyze_table(
    workspace: Workspace, session: LazySession, name: str, version: DatasetVersion
) -> Analyzed:
    table = LakeTable.of(workspace.lake, name)
    if not lake.exists(session.spark, table):
        return Analyzed(name, version.version_tag)
    with workspace.leases.hold(table_lease(workspace, name), wait=MAX_WAIT):
        statistics = lake.compute_statistics(session.spark, table)
    counted = lake.count_files(session.spark, table)
    return Analyzed(name, version.version_tag, statistics=statistics, **counted)


def _count_version(
    workspace: Workspace, session: LazySession, name: str, version: DatasetVersion
) -> Analyzed:
    """Return a version's size; count and store its rows if they are unknown."""
    rows = version.row_count
    if rows is None:
        stored = stored_version(workspace, name, version)
        frame = format_of(workspace, name).read(workspace.site, session.spark, stored)
        rows = int(frame.count())
        with workspace.catalog.writing() as writing:
            get_version_by_id(writing, version.dataset_version_id).row_count = rows
    return Analyzed(name, version.version_tag, rows, bytes=version.size_bytes)
