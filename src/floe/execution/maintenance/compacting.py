"""Write the small files of lake tables together into larger ones. The rows stay what they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from floe.catalog.datasets import record_dataset_event
from floe.execution.formats.iceberg.tables import LakeTable
from floe.execution.maintenance import lake
from floe.execution.maintenance.choosing import Say, chosen_tables, silent
from floe.execution.maintenance.sessions import LateSession
from floe.execution.sparks import Sparks
from floe.execution.versions.tables import table_lease
from floe.execution.workspace import Workspace

LONGEST_WAIT = timedelta(hours=1)
MIN_INPUT_FILES = 5


@dataclass(frozen=True)
class Compacted:
    """What a compaction did to one table."""

    dataset: str
    files_before: int
    """How many files were rewritten."""
    files_after: int
    """How many they became."""
    bytes: int


def compact_datasets(
    workspace: Workspace,
    sparks: Sparks,
    names: Sequence[str] | None,
    min_input_files: int = MIN_INPUT_FILES,
    say: Say = silent,
) -> list[Compacted]:
    """Compact lake tables, each under its lease: a write at the same time would be lost."""
    wanted = chosen_tables(workspace, names, "compacted")
    done = []
    with LateSession(sparks) as session:
        for place, name in enumerate(wanted, start=1):
            say(f"{name} ({place} of {len(wanted)})")
            with workspace.leases.hold(table_lease(workspace, name), wait=LONGEST_WAIT) as lease:
                lease.check()
                done.append(_compact(workspace, session, name, min_input_files))
    return done


def _compact(
    workspace: Workspace, session: LateSession, name: str, min_input_files: int
) -> Compacted:
    table = LakeTable.of(workspace.lake, name)
    if not lake.exists(session.spark, table):
        return Compacted(name, 0, 0, 0)
    counted = lake.rewrite_data_files(session.spark, table, min_input_files)
    if counted["files_before"]:
        number = workspace.dataset_id(name)
        with workspace.catalog.writing() as writing:
            record_dataset_event(writing, number, "COMPACTED", None, counted)
    return Compacted(name, **counted)
