"""The files of a server: its state, logs and settings."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from floe import clock
from floe.execution.os_processes import start_of
from floe.execution.spark.jvm import to_properties
from floe.execution.spark.server import ensure_server, server_status, stop_server
from floe.execution.spark.server_files import (
    Running,
    ServerFiles,
    error_lines,
    follow_lines,
    last_lines,
    read_state,
    write_private,
    write_state,
)
from floe.spec import PlatformSpec
from floe.spec.platform import Compute
from tests.execution.sites import make_site

RUNNING = Running(
    pid=os.getpid(),
    start="another boot/1",
    port=1,
    token="t0ken",
    fingerprint="f",
    master="local[1]",
    started_at=clock.now(),
    ready=True,
)


@pytest.fixture
def files(tmp_path: Path) -> ServerFiles:
    return ServerFiles(make_site(tmp_path))


def test_the_state_is_stored_privately_and_read_back(files: ServerFiles) -> None:
    write_state(files, RUNNING)
    assert read_state(files) == RUNNING
    assert files.state.stat().st_mode & 0o777 == 0o600
    assert "t0ken" not in repr(RUNNING)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"started_at": "soon"}'])
def test_an_invalid_state_file_means_no_server(files: ServerFiles, text: str) -> None:
    files.folder.mkdir(parents=True)
    files.state.write_text(text)
    assert read_state(files) is None


def test_unknown_fields_of_another_version_are_ignored(files: ServerFiles) -> None:
    write_state(files, RUNNING)
    content = json.loads(files.state.read_text())
    files.state.write_text(json.dumps({**content, "colour": "blue"}))
    assert read_state(files) == RUNNING


def test_a_process_id_reused_by_another_process_is_a_dead_server(files: ServerFiles) -> None:
    write_state(files, RUNNING)
    files.log.parent.mkdir(parents=True)
    files.output.write_text("Terminating due to java.lang.OutOfMemoryError: Java heap space\n")
    status = server_status(files.site)
    assert (status.state, status.pid) == ("died", None)
    assert status.last_output == ("Terminating due to java.lang.OutOfMemoryError: Java heap space",)
    assert stop_server(files.site) is False
    assert server_status(files.site).state == "stopped"


def test_a_running_server_is_used_without_locking_or_finding_java(files: ServerFiles) -> None:
    from floe.execution.spark.server_settings import fingerprint

    running = replace(
        RUNNING, start=start_of(os.getpid()) or "", fingerprint=fingerprint(files.site)
    )
    write_state(files, running)
    server = ensure_server(files.site)
    assert server.address == "sc://localhost:1"
    assert server.url == "sc://localhost:1/;token=t0ken"
    assert "t0ken" not in repr(server)
    assert not files.lock.exists()


def test_a_server_with_other_settings_is_outdated(files: ServerFiles) -> None:
    write_state(files, replace(RUNNING, start=start_of(os.getpid()) or ""))
    assert server_status(files.site).outdated


def test_every_profile_has_its_own_server(tmp_path: Path) -> None:
    platform = PlatformSpec(compute={"default": Compute(), "big": Compute(memory="8g")})
    site = make_site(tmp_path, platform)
    assert ServerFiles(site, "default").state == ServerFiles(site).state
    assert ServerFiles(site, "big").state == tmp_path / ".floe" / "spark" / "big" / "server.json"
    assert ServerFiles(site, "big").log.name == "spark-big.log"


def test_error_lines_are_picked_from_a_stack_trace() -> None:
    lines = [
        "INFO starting",
        'Exception in thread "main" java.net.BindException: Address already in use',
        "\tat java.base/sun.nio.ch.Net.bind0(Native Method)",
        "\t... 12 more",
        "INFO shutting down",
    ]
    assert error_lines(lines) == [lines[1]]


def test_without_an_error_line_the_last_lines_are_shown() -> None:
    assert error_lines(["a", "", "b"]) == ["a", "b"]
    assert error_lines([]) == []


def test_only_the_end_of_a_log_after_an_offset_is_read(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    assert last_lines(log, 5) == []
    log.write_text("old\nnew\nnewest\n")
    assert last_lines(log, 2) == ["new", "newest"]
    assert last_lines(log, 5, since=4) == ["new", "newest"]
    assert last_lines(log, 0) == []


def test_following_a_log_continues_after_rotation(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text("before\n")

    def write() -> None:
        time.sleep(0.2)
        with log.open("a") as file:
            file.write("first\n")
        time.sleep(0.2)
        log.replace(tmp_path / "spark.log.1")
        log.write_text("second\n")

    writer = Thread(target=write)
    writer.start()
    lines = follow_lines(log, pause=0.01)
    assert [next(lines), next(lines)] == ["first", "second"]
    lines.close()
    writer.join()


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("plain=with:signs#and!more", "key=plain=with:signs#and!more\n"),
        ("C:\\data", "key=C:\\\\data\n"),
        ("two\nlines", "key=two\\nlines\n"),
        ("  led by blanks", "key=\\ \\ led by blanks\n"),
    ],
)
def test_property_values_are_escaped(value: str, line: str) -> None:
    assert to_properties({"key": value}) == line


def test_property_keys_are_escaped() -> None:
    assert to_properties({"a b=c:d": "x"}) == "a\\ b\\=c\\:d=x\n"


def test_a_private_file_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "new" / "server.properties"
    write_private(path, "a=b\n")
    write_private(path, "a=c\n")
    assert path.read_text() == "a=c\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
