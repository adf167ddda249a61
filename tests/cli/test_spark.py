"""`floe spark`, as a user types it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from floe.cli.spark import app
from floe.execution.os_processes import start_of, wait_until
from floe.execution.spark.errors import LogMissingError, NoOwnServerError

# Tests that run in the background ignore Ctrl-C, and so do their children.
RESET_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
FLOE = [sys.executable, "-c", f"{RESET_SIGINT}from floe.cli import main; main()", "spark"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "floe.yaml").write_text("name: night\n")
    (tmp_path / "platform.yaml").write_text("compute: {default: {memory: 1g}}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def floe_spark(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    return done.exit_code, done.stdout


def test_a_server_that_was_never_started_is_not_running(project: Path) -> None:
    code, said = floe_spark("status")
    assert (code, "not running" in said) == (3, True)
    code, said = floe_spark("status", "--json")
    assert (code, json.loads(said)["state"]) == (3, "stopped")
    assert floe_spark("stop") == (0, "Spark was not running.\n")
    with pytest.raises(LogMissingError, match="floe spark start"):
        floe_spark("logs")


def test_a_foreign_server_is_shown_and_not_stopped(project: Path) -> None:
    (project / "platform.yaml").write_text("compute: {default: {url: 'sc://lake:15002'}}\n")
    code, said = floe_spark("status")
    assert (code, "managed elsewhere" in said) == (0, True)
    for command in ("stop", "logs"):
        with pytest.raises(NoOwnServerError, match="sc://lake:15002"):
            floe_spark(command)


def test_the_last_lines_of_the_log_are_shown(project: Path) -> None:
    log = project / ".floe" / "logs" / "spark.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\ntwo\nthree\n")
    assert floe_spark("logs", "-n", "2") == (0, "two\nthree\n")


@pytest.mark.java
@pytest.mark.slow
def test_start_status_and_stop(project: Path) -> None:
    done = subprocess.run([*FLOE, "start"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Spark has started at sc://localhost:")
    assert "starting Spark" in done.stderr
    try:
        assert "Spark is already running" in floe_spark("start")[1]
        code, said = floe_spark("status", "--json")
        found = json.loads(said)
        assert (code, found["state"], found["outdated"]) == (0, "running", False)
        assert "token" not in said
        assert "Spark Connect server started" in floe_spark("logs")[1]
        os.kill(found["pid"], signal.SIGKILL)
        assert wait_until(lambda: floe_spark("status")[0] == 1, 10)
    finally:
        floe_spark("stop")
    assert floe_spark("status")[0] == 3


@pytest.mark.java
@pytest.mark.slow
def test_ctrl_c_during_the_start_leaves_nothing_behind(project: Path) -> None:
    folder = project / ".floe" / "spark"
    with subprocess.Popen([*FLOE, "start"], stderr=subprocess.PIPE, text=True) as impatient:
        assert wait_until((folder / "server.json").exists, 60)
        pid = json.loads((folder / "server.json").read_text())["pid"]
        impatient.send_signal(signal.SIGINT)
        _, said = impatient.communicate()
    try:
        assert impatient.returncode == 130
        assert "Traceback" not in said
        assert start_of(pid) is None
        assert [file.name for file in folder.iterdir()] == ["lock"]
    finally:
        floe_spark("stop")
