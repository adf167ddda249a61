"""The state file of `floe up`, and its lock."""

import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from floe.services.state import (
    ServiceStatus,
    State,
    Up,
    lock_project,
    read_up,
    state_file,
    write_up,
)
from floe.settings import ProjectPaths

SINCE = datetime(2026, 9, 1, 6, 30, tzinfo=UTC)


def status(state: State) -> ServiceStatus:
    return ServiceStatus(
        "web", state, SINCE, Path("web.log"), "http://here", 1, "start", 2, "a message"
    )


def up(*states: State) -> Up:
    return Up(1, "start", SINCE, Path("/tmp/floe-x"), ("note",), tuple(map(status, states)))


def test_a_written_state_is_read_back(paths: ProjectPaths) -> None:
    write_up(paths, up("running", "done"))
    assert read_up(paths) == up("running", "done")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_an_unreadable_file_counts_as_missing(paths: ProjectPaths, text: str) -> None:
    write_up(paths, up())
    state_file(paths).write_text(text)
    assert read_up(paths) is None


@pytest.mark.parametrize(
    ("states", "settled"),
    [
        (("running", "done", "foreign"), True),
        (("running", "starting"), False),
        (("running", "waiting"), False),
        (("failed", "waiting"), True),
        (("failed", "restarting"), False),
    ],
)
def test_the_state_is_settled_when_no_service_can_change_by_itself(
    states: tuple[State, ...], settled: bool
) -> None:
    assert up(*states).settled is settled


def test_a_project_is_locked_once(paths: ProjectPaths) -> None:
    with lock_project(paths) as first:
        assert first
        with lock_project(paths) as second:
            assert not second
    with lock_project(paths) as third:
        assert third


def open_files(pid: int) -> set[str]:
    names = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        # A program that has just started closes the files of its loader.
        with suppress(FileNotFoundError):
            names.add(link.readlink().name)
    return names


def test_children_do_not_inherit_the_lock(paths: ProjectPaths) -> None:
    with lock_project(paths), subprocess.Popen(["sleep", "600"], close_fds=False) as child:
        try:
            assert "up.lock" not in open_files(child.pid)
        finally:
            child.kill()
