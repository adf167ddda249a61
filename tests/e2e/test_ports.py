"""The ports that `floe up` opens: their addresses, and that all need credentials."""

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

from floe.services.child_processes import members
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
    """A socket on which a service listens."""

    service: str
    kind: str
    address: str
    port: int = 0


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A running project whose files an older floe left readable by others."""
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
    status = read_up(ProjectPaths(project))
    assert status is not None
    return status


@pytest.fixture(scope="module")
def listening(project: Path, up: Up) -> list[Listening]:
    """All sockets on which the project's processes listen, according to /proc."""
    pids = {
        pid: service.name for service in up.services if service.pid for pid in members(service.pid)
    }
    pids[up.pid] = "supervisor"
    pids[json.loads((project / ".floe/spark/server.json").read_text())["pid"]] = "spark"
    tcp = {**_tcp(Path("/proc/net/tcp")), **_tcp(Path("/proc/net/tcp6"))}
    unix = _unix()
    sockets = set()
    for pid, service in pids.items():
        for inode in _inodes(pid):
            if inode in tcp:
                sockets.add((inode, Listening(service, "TCP", *tcp[inode])))
            elif inode in unix:
                sockets.add((inode, Listening(service, "socket", unix[inode])))
    return sorted({entry for _, entry in sockets})


def _inodes(pid: int) -> Iterator[str]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue
        if match := re.fullmatch(r"socket:\[(\d+)\]", target):
            yield match[1]


def _tcp(table: Path) -> dict[str, tuple[str, int]]:
    sockets = {}
    for line in table.read_text().splitlines()[1:]:
        fields = line.split()
        address, port = fields[1].split(":")
        if fields[3] == LISTENING:
            raw = struct.pack(
                f"={len(address) // 8}I",
                *struct.unpack(f">{len(address) // 8}I", bytes.fromhex(address)),
            )
            family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
            sockets[fields[9]] = socket.inet_ntop(family, raw), int(port, 16)
    return sockets


def _unix() -> dict[str, str]:
    """Return the paths of listening Unix sockets, by inode."""
    accepts = "00010000"
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return {row[6]: row[7] for row in rows if row[3] == accepts and len(row) > 7}


def test_the_page_lists_every_listening_socket(listening: list[Listening]) -> None:
    rows = re.findall(r"^\| (\w+) \| (TCP|a socket)\b", PAGE.read_text(), re.MULTILINE)
    described = Counter((service, kind.removeprefix("a ")) for service, kind in rows)
    assert Counter((entry.service, entry.kind) for entry in listening) == described


def test_everything_listens_on_loopback_or_in_a_private_folder(listening: list[Listening]) -> None:
    for entry in listening:
        if entry.kind == "TCP":
            assert entry.address in ("127.0.0.1", "::ffff:127.0.0.1"), entry
        else:
            assert Path(entry.address).parent.stat().st_mode & 0o777 == 0o700, entry


def test_pages_need_a_login(listening: list[Listening]) -> None:
    for service, path in (("api", "/api/v1/datasets"), ("web", "/"), ("web", "/graphql")):
        (port,) = [entry.port for entry in listening if entry.service == service]
        for host, status in ((f"127.0.0.1:{port}", 401), ("evil.example", 421)):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
            request.add_header("Host", host)
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request)
            assert refused.value.code == status
            refused.value.close()


def test_spark_needs_its_secrets(project: Path, listening: list[Listening]) -> None:
    connect = json.loads((project / ".floe/spark/server.json").read_text())["port"]
    ports = [entry.port for entry in listening if entry.service == "spark"]
    assert connect in ports
    with grpc.insecure_channel(f"127.0.0.1:{connect}") as channel:
        call = channel.unary_unary("/spark.connect.SparkConnectService/Config")
        with pytest.raises(grpc.RpcError) as refused:
            call(b"", timeout=60)
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
    for port in set(ports) - {connect}:
        # Without authentication, Java would deserialize whatever is sent here.
        assert b"Expected SaslMessage" in _send_rpc(port, b"not a secret")


def _send_rpc(port: int, body: bytes) -> bytes:
    """Send a request as Spark's own processes do; return the response."""
    message = struct.pack(">bqi", 3, 1, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        line.sendall(struct.pack(">q", len(message) + 8) + message)
        return line.recv(4096)


def test_only_the_owner_can_read_the_files_of_floe(project: Path) -> None:
    state = project / ".floe"
    # The working files of the JVM are in a private folder.
    files = [path for path in state.rglob("*") if state / "spark" / "work" not in path.parents]
    names = {path.name for path in files}
    assert {"catalog.db", "lake.db", "spark.log", "web.log", "web.secret"} <= names
    open_to_others = {
        str(path.relative_to(state)): oct(mode)
        for path in (state, *files)
        if "lake" not in path.relative_to(state).parts and (mode := _mode(path)) & 0o077
    }
    assert open_to_others == {}


def _mode(path: Path) -> int:
    """Return a file's permissions; 0 if SQLite has removed it in the meantime."""
    try:
        return path.lstat().st_mode & 0o777 if not path.is_symlink() else 0
    except FileNotFoundError:
        return 0
