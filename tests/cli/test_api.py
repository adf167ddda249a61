"""`floe api`, started and stopped as a user does."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from floe.cli import app
from floe.cli.context import write_secret
from floe.client import Client
from floe.client.environment import read_environment
from tests.events.factory import event, recently, run_id, written
from tools.processes import running

# Each starts programs of its own.
pytestmark = pytest.mark.slow

FLOE = Path(sys.executable).with_name("floe")
WAIT_SECONDS = 300


@contextmanager
def floe_api(folder: Path, *words: str) -> Iterator[tuple["subprocess.Popen[str]", list[str]]]:
    """Run floe api in a folder; yield the process and its output until it was ready."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FLOE_")}
    command: list[str | Path] = [FLOE, "api", "--port", "0", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with running(command, cwd=folder, env=environ, **pipes) as process:
        assert process.stdout is not None
        said: list[str] = []
        while not said or said[-1] != "Stop with Ctrl-C.":
            line = process.stdout.readline()
            assert line, said
            said.append(line.strip())
        yield process, said


def url_in(said: list[str]) -> str:
    return said[0].removeprefix("floe api is at ")


def get(url: str, token: str | None = None, **body: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    data = None
    if body:
        headers["Content-Type"], data = "application/json", json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
        return json.loads(answer.read() or b"null")


def test_a_fresh_folder_gets_a_catalog_an_admin_and_a_link(tmp_path: Path) -> None:
    with floe_api(tmp_path) as (process, said):
        url = url_in(said)
        token = (tmp_path / ".floe" / "token").read_text().strip()
        link = said[1].removeprefix(
            f"Log in with this link (works once, within an hour): {url}/login#link="
        )
        assert token not in said[1]
        assert get(f"{url}/api/v1/session", link=link)["name"] == "admin"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(f"{url}/api/v1/session", link=link)
        assert get(f"{url}/api/v1/health")["status"] == "up"
        assert get(f"{url}/api/v1/me", token)["roles"] == ["PLATFORM_ADMIN"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 0
    mode = (tmp_path / ".floe" / "token").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_a_log_gets_no_link_and_received_events_survive_a_restart(tmp_path: Path) -> None:
    with floe_api(tmp_path) as (process, said):
        token = (tmp_path / ".floe" / "token").read_text().strip()
        report = {"process_name": "AUTOSYS/BOX/JOB", "status": "SUCCESS"}
        get(f"{url_in(said)}/api/v1/register_process", token, **report)
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) == 0
        assert process.stdout is not None
        assert "All received events are stored" in process.stdout.read()
    with floe_api(tmp_path) as (_, said):
        assert not any("#link=" in line for line in said)
        assert "Log in with your token, or get a link with: floe session link" in said
        assert f"Commands in this folder use the token in {tmp_path / '.floe' / 'token'}." in said
        assert len(get(f"{url_in(said)}/api/v1/runs", token)["items"]) == 1


def test_events_older_than_the_retention_trigger_nothing(tmp_path: Path) -> None:
    (tmp_path / "floe.yaml").write_text("name: night\n")
    kept = "catalog:\n  default:\n    retention: {events: 1h}\n"
    (tmp_path / "platform.yaml").write_text(kept)
    body = json.loads(event("COMPLETE", recently(0), outputs=[written("t")]))
    with floe_api(tmp_path, "--no-auth") as (_, said):
        get(f"{url_in(said)}/api/v1/lineage", **body)
        assert get(f"{url_in(said)}/api/v1/run/{run_id('run')}")["historical"] is True
        assert get(f"{url_in(said)}/api/v1/changes")["items"] == []


@pytest.mark.parametrize(("host", "own"), [("0.0.0.0", "127.0.0.1"), ("::", "::1")])
def test_local_jobs_find_an_api_that_listens_on_all_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, own: str
) -> None:
    for name in ("FLOE_API_URL", "FLOE_API_TOKEN", "FLOE_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FLOE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.chdir(tmp_path)
    with floe_api(tmp_path, "--host", host) as (_, said):
        port = url_in(said).rpartition(":")[2]
        assert url_in(said) == f"http://{socket.gethostname()}:{port}"
        around = read_environment()
        assert urlsplit(around.url).hostname == own
        assert around.token == (tmp_path / ".floe" / "token").read_text().strip()
        assert Client().register_dataset("night.t", "v1").delivered


def test_a_client_waiting_for_changes_does_not_delay_the_stop(tmp_path: Path) -> None:
    with floe_api(tmp_path, "--no-auth") as (process, said):
        assert any("No login required" in line for line in said)
        command = [sys.executable, "-c", WAITER, f"{url_in(said)}/api/v1/changes?wait=60"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL):
            time.sleep(1)
            started = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_SECONDS) == 0
            assert time.monotonic() - started < 20


WAITER = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])"


def test_a_taken_port_is_reported_in_one_line(tmp_path: Path) -> None:
    with floe_api(tmp_path) as (_, said):
        port = url_in(said).rpartition(":")[2]
        done = subprocess.run(
            [FLOE, "api", "--port", port], cwd=tmp_path, capture_output=True, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith(f"Port {port} on 127.0.0.1 is already in use, perhaps by another")


def test_no_auth_is_refused_on_a_public_address(tmp_path: Path) -> None:
    done = subprocess.run(
        [FLOE, "api", "--port", "0", "--host", "0.0.0.0", "--no-auth"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "0.0.0.0 is reachable from other machines" in done.stderr


def test_the_openapi_document_is_printed_without_a_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = CliRunner().invoke(app, ["api", "--openapi"], catch_exceptions=False).stdout
    assert "/api/v1/lineage" in json.loads(printed)["paths"]
    assert not (tmp_path / ".floe").exists()


def test_a_secret_file_is_replaced_and_always_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "token"
    for text in ("first", "second"):
        write_secret(path, text)
        assert path.read_text() == f"{text}\n"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["token"]


def test_commands_in_a_folder_without_a_project_use_the_catalog_of_its_api(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FLOE_")}

    def floe(*words: str) -> "subprocess.CompletedProcess[str]":
        command: list[str | Path] = [FLOE, *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )

    assert "No floe.yaml in" in floe("datasets").stderr
    assert not (tmp_path / ".floe").exists()
    with floe_api(tmp_path):
        sent = floe("register-dataset", "credit.exposure", "--version", "2026-09-01")
        assert sent.returncode == 0, sent.stderr
        shown = floe("lineage", "credit.exposure")
    assert (shown.returncode, "credit.exposure" in shown.stdout) == (0, True)
    assert "credit.exposure" in floe("datasets").stdout
    assert floe("events", "export").stdout.count("credit.exposure") > 0
