"""The file that tells what is up."""

import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from floe.services.state import Standing, State, Up, held, read_up, state_file, write_up
from floe.settings import ProjectPaths

SINCE = datetime(2026, 9, 1, 6, 30, tzinfo=UTC)


def standing(state: State) -> Standing:
    return Standing("web", state, SINCE, Path("web.log"), "http://here", 1, "start", 2, "said")


def up(*states: State) -> Up:
    return Up(1, "start", SINCE, Path("/tmp/floe-x"), ("note",), tuple(map(standing, states)))


def test_what_is_written_is_read_again(paths: ProjectPaths) -> None:
    write_up(paths, up("running", "done"))
    assert read_up(paths) == up("running", "done")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_file_that_cannot_be_read_says_nothing(paths: ProjectPaths, text: str) -> None:
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
def test_all_is_settled_when_nothing_can_change_by_itself(
    states: tuple[State, ...], settled: bool
) -> None:
    assert up(*states).settled is settled


def test_only_one_brings_a_project_up(paths: ProjectPaths) -> None:
    with held(paths) as first:
        assert first
        with held(paths) as second:
            assert not second
    with held(paths) as third:
        assert third


def open_files(pid: int) -> set[str]:
    names = set()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        # A program that has just begun closes what its loader had opened.
        with suppress(FileNotFoundError):
            names.add(one.readlink().name)
    return names


def test_children_do_not_hold_what_their_parent_holds(paths: ProjectPaths) -> None:
    with held(paths), subprocess.Popen(["sleep", "600"], close_fds=False) as child:
        try:
            assert "up.lock" not in open_files(child.pid)
        finally:
            child.kill()
