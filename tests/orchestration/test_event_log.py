"""The event log with open connections has the same files and events as Dagster's own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
    EventLogEntry,
    OpExecutionContext,
    RunsFilter,
    job,
    op,
)
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage

from floe.execution.os_processes import wait_until
from floe.execution.workspace import load_site
from floe.orchestration.event_log import MAX_OPEN, KeptEventLog
from floe.orchestration.instance import open_instance
from floe.settings import ProjectPaths

pytestmark = pytest.mark.slow


@op
def make(context: OpExecutionContext) -> None:
    context.log_event(AssetMaterialization("orders"))


@job
def night() -> None:
    make()


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    (tmp_path / "floe.yaml").write_text("name: night\n")
    with open_instance(load_site(ProjectPaths(tmp_path))) as instance:
        assert isinstance(instance.event_log_storage, KeptEventLog)
        yield instance


def run(instance: DagsterInstance) -> str:
    done = night.execute_in_process(instance=instance)
    assert done.success
    return done.run_id


def kinds(log: SqliteEventLogStorage, run_id: str) -> list[str]:
    return [entry.dagster_event.event_type_value for entry in log.get_logs_for_run(run_id)
            if entry.dagster_event]  # fmt: skip


def plain_log(instance: DagsterInstance) -> SqliteEventLogStorage:
    """The same files in Dagster's own storage class."""
    return SqliteEventLogStorage(str(Path(instance.root_directory) / "history" / "runs"))


def kept_log(instance: DagsterInstance) -> KeptEventLog:
    log = instance.event_log_storage
    assert isinstance(log, KeptEventLog)
    return log


def test_dagster_itself_reads_the_same_events(instance: DagsterInstance) -> None:
    run_id = run(instance)
    mine = kinds(kept_log(instance), run_id)
    assert mine[-1] == "PIPELINE_SUCCESS"
    assert "ASSET_MATERIALIZATION" in mine
    assert kinds(plain_log(instance), run_id) == mine


def test_events_can_be_added_to_a_log_that_dagster_created(instance: DagsterInstance) -> None:
    log, plain = kept_log(instance), plain_log(instance)
    run_id = run(instance)
    (first, *_) = plain.get_logs_for_run(run_id)
    other = first._replace(run_id="other")
    plain.store_event(other)
    log.store_event(other)
    assert len(log.get_logs_for_run("other")) == len(plain.get_logs_for_run("other")) == 2


def test_few_files_stay_open_and_all_runs_can_be_read(instance: DagsterInstance) -> None:
    runs = [run(instance) for _ in range(MAX_OPEN + 2)]
    assert len(instance.get_runs(RunsFilter())) == len(runs)
    assert all(kinds(kept_log(instance), run)[-1] == "PIPELINE_SUCCESS" for run in runs)
    folder = Path(instance.root_directory) / "history" / "runs"
    links = [str(item.readlink()) for item in Path("/proc/self/fd").iterdir() if item.is_symlink()]
    opened = {link for link in links if link.startswith(str(folder)) and link.endswith(".db")}
    assert len(opened) <= MAX_OPEN


def test_a_forked_child_uses_its_own_connections(instance: DagsterInstance) -> None:
    log, run_id = kept_log(instance), run(instance)
    (first, *_) = log.get_logs_for_run(run_id)
    before = len(log.get_logs_for_run(run_id))
    child = os.fork()
    if child == 0:
        try:
            log.store_event(first)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    log.store_event(first)
    assert len(log.get_logs_for_run(run_id)) == before + 2


def test_watchers_get_events_while_the_file_stays_open(
    instance: DagsterInstance,
) -> None:
    log, run_id = kept_log(instance), run(instance)
    (first, *_) = log.get_logs_for_run(run_id)
    heard: list[str] = []

    def hear(entry: EventLogEntry, cursor: str) -> None:
        heard.append(cursor)

    log.watch(run_id, None, hear)
    try:
        log.store_event(first)
        assert wait_until(lambda: bool(heard), 30)
    finally:
        log.end_watch(run_id, hear)


def test_wipe_deletes_all_events(instance: DagsterInstance) -> None:
    log, run_id = kept_log(instance), run(instance)
    assert log.has_asset_key(AssetKey("orders"))
    log.wipe()
    assert not log.has_asset_key(AssetKey("orders"))
    assert kinds(log, run_id) == []
    assert run(instance)
