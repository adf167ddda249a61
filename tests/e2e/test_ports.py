"""Everything that `floe up` opens: where it listens, and who is let in without credentials."""

import json
import re
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import grpc  # type: ignore[import-untyped]
import pytest

from floe.services.children import members
from floe.services.state import Up, read_up
from floe.settings import ProjectPaths

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

FLOE = (sys.executable, "-m", "floe.cli")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "access.md"
LISTENING = "0A"
ASSETS = """
from dagster import asset


@asset
def hello() -> None: ...
"""


class Listening(NamedTuple):
    """A socket that a service waits at."""

    service: str
    kind: str
    address: str
    port: int = 0


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project that an older floe has left open to others, and that is up."""
    folder = tmp_path_factory.mktemp("night")
    (folder / "floe.yaml").write_text("name: night\norchestration: {asset_modules: [assets]}\n")
    (folder / "platform.yaml").write_text("compute: {default: {memory: 1g}}\n")
    (folder / "assets.py").write_text(ASSETS)
    subprocess.run([*FLOE, "token", "list"], cwd=folder, check=True, capture_output=True)
    (folder / ".floe" / "logs").mkdir()
    for path in (folder / ".floe", *(folder / ".floe").rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    up = [*FLOE, "up", "--detach", "--port=0", "--dagster-port=0"]
    try:
        done = subprocess.run(up, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        yield folder
    finally:
        subprocess.run([*FLOE, "down"], cwd=folder, check=True)


@pytest.fixture(scope="module")
def up(project: Path) -> Up:
    found = read_up(ProjectPaths(project))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def listening(project: Path, up: Up) -> list[Listening]:
    """All that the processes of a project wait at, as the system tells."""
    pids = {pid: one.name for one in up.services if one.pid for pid in members(one.pid)}
    pids[up.pid] = "supervisor"
    pids[json.loads((project / ".floe/spark/server.json").read_text())["pid"]] = "spark"
    tcp = {**_tcp(Path("/proc/net/tcp")), **_tcp(Path("/proc/net/tcp6"))}
    unix = _unix()
    found = set()
    for pid, service in pids.items():
        for number in _sockets(pid):
            if number in tcp:
                found.add((number, Listening(service, "TCP", *tcp[number])))
            elif number in unix:
                found.add((number, Listening(service, "socket", unix[number])))
    return sorted({entry for _, entry in found})


def _sockets(pid: int) -> Iterator[str]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue
        if named := re.fullmatch(r"socket:\[(\d+)\]", target):
            yield named[1]


def _tcp(table: Path) -> dict[str, tuple[str, int]]:
    found = {}
    for line in table.read_text().splitlines()[1:]:
        fields = line.split()
        address, port = fields[1].split(":")
        if fields[3] == LISTENING:
            raw = struct.pack(
                f"={len(address) // 8}I",
                *struct.unpack(f">{len(address) // 8}I", bytes.fromhex(address)),
            )
            family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
            found[fields[9]] = socket.inet_ntop(family, raw), int(port, 16)
    return found


def _unix() -> dict[str, str]:
    """Return the sockets of the file system that somebody listens at, by their number."""
    accepts = "00010000"
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return {row[6]: row[7] for row in rows if row[3] == accepts and len(row) > 7}


def test_what_listens_is_what_the_page_says(listening: list[Listening]) -> None:
    rows = re.findall(r"^\| (\w+) \| (TCP|a socket)\b", PAGE.read_text(), re.MULTILINE)
    described = Counter((service, kind.removeprefix("a ")) for service, kind in rows)
    assert Counter((one.service, one.kind) for one in listening) == described


def test_everything_listens_on_loopback_or_in_a_private_folder(listening: list[Listening]) -> None:
    for one in listening:
        if one.kind == "TCP":
            assert one.address in ("127.0.0.1", "::ffff:127.0.0.1"), one
        else:
            assert Path(one.address).parent.stat().st_mode & 0o777 == 0o700, one


def test_pages_let_nobody_in_without_a_login(listening: list[Listening]) -> None:
    for service, path in (("api", "/api/v1/datasets"), ("web", "/"), ("web", "/graphql")):
        (port,) = [one.port for one in listening if one.service == service]
        for host, status in ((f"127.0.0.1:{port}", 401), ("evil.example", 421)):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
            request.add_header("Host", host)
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request)
            assert refused.value.code == status
            refused.value.close()


def test_spark_lets_nobody_in_without_its_secrets(
    project: Path, listening: list[Listening]
) -> None:
    connect = json.loads((project / ".floe/spark/server.json").read_text())["port"]
    ports = [one.port for one in listening if one.service == "spark"]
    assert connect in ports
    with grpc.insecure_channel(f"127.0.0.1:{connect}") as channel:
        call = channel.unary_unary("/spark.connect.SparkConnectService/Config")
        with pytest.raises(grpc.RpcError) as refused:
            call(b"", timeout=60)
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
    for port in set(ports) - {connect}:
        # Without authentication, Java would be made to read whatever is sent here as objects.
        assert b"Expected SaslMessage" in _send_rpc(port, b"not a secret")


def _send_rpc(port: int, body: bytes) -> bytes:
    """Send a request as Spark's own processes do; return what comes back."""
    message = struct.pack(">bqi", 3, 1, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        line.sendall(struct.pack(">q", len(message) + 8) + message)
        return line.recv(4096)


def test_what_floe_keeps_is_for_its_owner_alone(project: Path) -> None:
    state = project / ".floe"
    # What the JVM needs while it runs lies in a folder that is closed.
    kept = [path for path in state.rglob("*") if state / "spark" / "work" not in path.parents]
    names = {path.name for path in kept}
    assert {"catalog.db", "lake.db", "spark.log", "web.log", "web.secret"} <= names
    open_to_others = {
        str(path.relative_to(state)): oct(mode)
        for path in (state, *kept)
        if "lake" not in path.relative_to(state).parts and (mode := _mode(path)) & 0o077
    }
    assert open_to_others == {}


def _mode(path: Path) -> int:
    """Return a file's permissions; SQLite removes the files beside a database as others look."""
    try:
        return path.lstat().st_mode & 0o777 if not path.is_symlink() else 0
    except FileNotFoundError:
        return 0
