"""`floe up`, `floe status` and `floe down`, as a user types them: real processes, real Dagster."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floe.execution.os_processes import start_of, wait_until
from floe.services.child_processes import leftover_pids, members
from floe.services.state import Up, read_up, state_file
from floe.settings import ProjectPaths

# Each starts programs of its own.
pytestmark = pytest.mark.slow

FLOE = [sys.executable, "-m", "floe.cli"]
# Longer than floe itself waits for a service: a busy machine is no failure.
WAIT_SECONDS = 900
ASSETS = """
from dagster import DynamicPartitionsDefinition, asset


@asset(partitions_def=DynamicPartitionsDefinition(name="regions"))
def hello() -> None: ...
"""
FLOE_YAML = """
name: night
orchestration:
  asset_modules: [assets]
  partitions: {regions: {type: dynamic}}
"""
ADD_KEY = """
mutation($project: String!, $partitions: String!, $key: String!) {
  addDynamicPartition(
    repositorySelector: {repositoryLocationName: $project, repositoryName: "__repository__"},
    partitionsDefName: $partitions, partitionKey: $key
  ) { __typename }
}
"""
QUERY = "{ assetsOrError { ... on AssetConnection { nodes { key { path } } } } }"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "floe.yaml").write_text(FLOE_YAML)
    (tmp_path / "assets.py").write_text(ASSETS)
    (tmp_path / "platform.yaml").write_text("compute: {default: {memory: 1g}}\n")
    yield tmp_path
    floe(tmp_path, "down")
    assert read_up(ProjectPaths(tmp_path)) is None


def floe(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*FLOE, *words],
        cwd=folder,
        env=environ(),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_SECONDS,
    )


def environ() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FLOE_")}
    return {**kept, "COLUMNS": "200"}


def up(folder: Path, *words: str) -> Up:
    done = floe(folder, "up", "--detach", "--port", "0", "--dagster-port", "0", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    found = read_up(ProjectPaths(folder))
    assert found is not None
    return found


def status(folder: Path) -> dict[str, dict[str, Any]]:
    found = json.loads(floe(folder, "status", "--json").stdout)["services"]
    return {one["service"]: one for one in found}


def get(url: str, body: dict[str, Any] | None = None, token: str = "") -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
        return json.loads(answer.read())


def everything(found: Up) -> list[int]:
    """Return all pids: the supervisor, its services and their children."""
    sessions = [one.pid for one in found.services if one.pid is not None]
    return [found.pid, *(pid for session in sessions for pid in members(session))]


def gone(pids: list[int]) -> bool:
    return wait_until(lambda: not any(start_of(pid) for pid in pids), 30)


def test_up_status_and_down(project: Path) -> None:
    done = floe(project, "up", "--detach", "--only", "api,dagster", "--port", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    found = read_up(ProjectPaths(project))
    assert found is not None
    before = everything(found)
    services = status(project)
    assert {name: one["state"] for name, one in services.items()} == {
        "api": "running",
        "home": "done",
        "code": "running",
        "workers": "running",
        "web": "running",
        "daemon": "running",
    }
    assert get(f"{services['api']['address']}/api/v1/health")["status"] == "up"
    token = (project / ".floe" / "token").read_text().strip()
    web = services["web"]["address"]
    answer = get(f"{web}/graphql", {"query": QUERY}, token)
    assert answer["data"]["assetsOrError"]["nodes"] == [{"key": {"path": ["hello"]}}]
    wanted = {"project": "night", "partitions": "regions", "key": "emea"}
    get(f"{web}/graphql", {"query": ADD_KEY, "variables": wanted}, token)
    assert floe(project, "partitions", "list", "regions").stdout == "emea\n"
    assert token not in done.stdout
    (link,) = re.findall(rf"{web}/login#link=(\S+)", done.stdout)
    logs = [log.read_text(errors="replace") for log in (project / ".floe" / "logs").iterdir()]
    assert not [log for log in logs if token in log or "#link=" in log]
    assert get(f"{web}/api/v1/session", {"link": link})["name"] == "admin"
    assert re.search(r"web +running +http://127\.0\.0\.1", floe(project, "status").stdout)

    again = floe(project, "up")
    assert (again.returncode, "floe is already up" in again.stdout) == (0, True)
    assert services["web"]["address"] in again.stdout

    done = floe(project, "down")
    assert (done.returncode, done.stdout) == (0, "All services have stopped.\n")
    assert gone(before)
    assert not found.runtime.exists()
    assert floe(project, "status").returncode == 3
    assert floe(project, "down").stdout == "Nothing is up.\n"


def test_a_killed_service_is_restarted_with_its_children(project: Path) -> None:
    found = up(project, "--only", "api,dagster")
    code, api = (
        next(one for one in found.services if one.name == name) for name in ("code", "api")
    )
    for one in (code, api):
        assert one.pid is not None
    inner = [pid for pid in members(code.pid or 0) if pid != code.pid]
    assert inner
    for one in (code, api):
        os.kill(one.pid or 0, signal.SIGKILL)

    def is_back() -> bool:
        now = status(project)
        both = [now["code"], now["api"]]
        return all(one["restarts"] == 1 and one["state"] == "running" for one in both)

    assert wait_until(is_back, WAIT_SECONDS, 0.5)
    assert gone(inner)
    web = status(project)["web"]["address"]
    token = (project / ".floe" / "token").read_text().strip()

    def shows_assets() -> bool:
        answer = get(f"{web}/graphql", {"query": QUERY}, token)
        nodes = answer["data"]["assetsOrError"].get("nodes")
        return bool(nodes == [{"key": {"path": ["hello"]}}])

    assert wait_until(shows_assets, 60, 0.5)


def test_the_next_up_stops_what_a_killed_supervisor_left(project: Path) -> None:
    found = up(project, "--only", "api,dagster")
    before = everything(found)
    os.kill(found.pid, signal.SIGKILL)
    assert gone([found.pid])
    seen = floe(project, "status", "--json")
    assert seen.returncode == 1
    states = {one["service"]: one["state"] for one in json.loads(seen.stdout)["services"]}
    assert states["api"] == states["web"] == "left over"
    second = up(project, "--only", "api")
    assert gone(before)
    assert not found.runtime.exists()
    assert [one.name for one in second.services if one.alive] == ["api"]


def test_down_stops_what_a_killed_supervisor_left(project: Path) -> None:
    found = up(project, "--only", "api")
    before = everything(found)
    os.kill(found.pid, signal.SIGKILL)
    assert floe(project, "down").stdout == "All services have stopped.\n"
    assert gone(before)


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_leaves_no_process_even_during_the_start(project: Path, presses: int) -> None:
    command = [*FLOE, "up", "--only", "api,dagster", "--port", "0", "--dagster-port", "0"]
    with subprocess.Popen(
        command,
        cwd=project,
        env=environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("code is starting"):
                break
        found = read_up(ProjectPaths(project))
        assert found is not None
        assert wait_until(lambda: len(everything(found)) > 2, 30)
        for _ in range(presses):
            process.send_signal(signal.SIGINT)
        said.append(process.stdout.read())
    assert process.returncode == 0, said
    assert said[-1].endswith("All services have stopped.\n")
    assert "Traceback" not in "".join(said)
    assert gone(everything(found))
    assert not [pid for one in found.services for pid in leftover_pids(one)]
    assert not state_file(ProjectPaths(project)).exists()


def test_a_taken_port_that_was_requested_is_an_error(project: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused = floe(project, "up", "--only", "api", "--port", str(port))
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"Port {port} for the API is in use")
        refused = floe(project, "up", "--detach", "--only", "api", "--port", str(port))
        assert refused.returncode == 1
        assert f"Port {port} for the API is in use" in refused.stderr
    assert floe(project, "status").returncode == 3


def test_up_and_status_fail_with_the_reason_if_the_project_does_not_load(project: Path) -> None:
    (project / "assets.py").write_text("raise RuntimeError('broken on purpose')\n")
    came = floe(project, "up", "--detach", "--only", "dagster", "--dagster-port", "0")
    assert came.returncode == 1
    assert "All services are up" not in came.stdout
    seen = floe(project, "status")
    again = floe(project, "up")
    assert (seen.returncode, again.returncode) == (1, 1)
    for said in (came.stdout, seen.stdout, again.stdout):
        assert "the project does not load" in said
        assert "broken on purpose" in said
    states = {name: one["state"] for name, one in status(project).items()}
    assert states["web"] == "faulty"
    assert set(states.values()) == {"running", "done", "faulty"}


@pytest.mark.java
def test_spark_is_started_restarted_and_stopped(project: Path) -> None:
    found = up(project, "--only", "spark")
    address = found.services[0].address
    assert address is not None
    assert address.startswith("sc://localhost:")
    server = json.loads((project / ".floe" / "spark" / "server.json").read_text())
    os.kill(server["pid"], signal.SIGKILL)

    def is_back() -> bool:
        now = status(project)["spark"]
        return bool(now["restarts"] == 1 and now["state"] == "running")

    assert wait_until(is_back, WAIT_SECONDS, 0.5)
    second = json.loads((project / ".floe" / "spark" / "server.json").read_text())
    assert second["pid"] != server["pid"]
    assert floe(project, "down").returncode == 0
    assert gone([second["pid"], *everything(found)])
