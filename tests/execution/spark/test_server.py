"""A real server: one per project, whoever starts it and however it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from floe.execution.os_processes import wait_until
from floe.execution.site import Site
from floe.execution.spark.errors import (
    NoOwnServerError,
    SparkLostError,
    SparkNotStartedError,
    SparkRefusedError,
)
from floe.execution.spark.server import Server, ensure_server, server_status, stop_server
from floe.execution.spark.server_files import ServerFiles
from floe.execution.spark.session import close_session, is_lost, is_transient, open_session
from floe.spec import PlatformSpec
from floe.spec.platform import Compute
from floe.spec.secrets import SecretRef
from tests.execution.sites import make_site

pytestmark = [pytest.mark.java, pytest.mark.slow]

PIN = "spark.sql.catalog.lake.pin"
START = """
import sys
from pathlib import Path
from tests.execution.sites import make_site
from floe.execution.spark.server import ensure_server
print(ensure_server(make_site(Path(sys.argv[1]))).pid)
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A separate project; its server is stopped at the end."""
    site = make_site(tmp_path)
    yield site
    stop_server(site)


def starter(site: Site) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", START, str(site.root)], stdout=subprocess.PIPE, text=True
    )


def test_two_starters_share_a_server_that_outlives_them(site: Site) -> None:
    with starter(site) as first, starter(site) as second:
        pids = {int(process.communicate()[0]) for process in (first, second)}
    status = server_status(site)
    assert (status.state, {status.pid}) == ("running", pids)
    assert not ServerFiles(site).properties.exists()
    assert stop_server(site) is True
    assert server_status(site).state == "stopped"
    assert stop_server(site) is False


def test_the_next_caller_uses_the_server_of_a_killed_starter(site: Site) -> None:
    files = ServerFiles(site)
    with starter(site) as killed:
        assert wait_until(files.state.exists, 60)
        killed.kill()
    started = server_status(site)
    assert started.state == "starting"
    server = ensure_server(site)
    assert server.pid == started.pid
    assert not files.properties.exists()
    assert not files.pid.exists()
    check_commits_survive_a_kill(site, server)


def check_commits_survive_a_kill(site: Site, server: Server) -> None:
    session = open_session(site, server)
    session.sql("CREATE NAMESPACE night")
    session.sql("CREATE TABLE night.t AS SELECT 1 AS id")
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(Exception) as raised:  # noqa: PT011
        session.sql("SELECT 1").collect()
    assert is_lost(raised.value)
    assert is_transient(raised.value)
    assert server_status(site).state == "died"
    with pytest.raises(SparkLostError, match="floe spark logs"):
        open_session(site, server)
    close_session(session)
    # It restarts by itself, and leaves no lock on the catalog.
    again = open_session(site)
    again.sql("INSERT INTO night.t VALUES (2)")
    assert again.table("night.t").count() == 2
    close_session(again)


def test_changed_settings_wait_for_clients_and_then_restart_the_server(site: Site) -> None:
    before = ensure_server(site)
    session = open_session(site, before)
    conf = {
        PIN: SecretRef("env", "PIN"),
        "spark.plain": "C:\\open up",
        "spark.sql.shuffle.partitions": "7",
    }
    changed = PlatformSpec(compute={"default": Compute(memory="1g", conf=conf)})
    later = replace(site, platform=changed, environ={**os.environ, "PIN": "s3same"})
    assert ensure_server(later).pid == before.pid
    assert server_status(later).outdated
    close_session(session)
    assert wait_until(lambda: server_status(later).clients == 0, 10)
    messages: list[str] = []
    server = ensure_server(later, messages.append)
    assert server.pid != before.pid
    assert "settings have changed" in messages[0]
    fresh = open_session(later)
    assert fresh.conf.get("spark.sql.shuffle.partitions") == "7"
    assert fresh.conf.get("spark.plain") == "C:\\open up"
    close_session(fresh)
    check_a_secret_reaches_only_spark(later, server)


def check_a_secret_reaches_only_spark(site: Site, server: Server) -> None:
    command = Path(f"/proc/{server.pid}/cmdline").read_text()
    assert "s3same" not in command
    assert server.url.partition("token=")[2] not in command
    kept = [file for file in site.state_dir.rglob("*") if file.is_file()]
    assert not [file for file in kept if b"s3same" in file.read_bytes()]
    session = open_session(site, server)
    # The setting exists, but even a client with the token cannot see its value.
    assert session.sql(f"SET {PIN}").collect()[0].value == "*********(redacted)"
    with pytest.raises(Exception, match="SQL_CONF_NOT_FOUND"):
        session.conf.get(PIN)
    close_session(session)


def test_a_failed_start_is_explained_and_leaves_nothing_behind(tmp_path: Path) -> None:
    broken = Compute(memory="1g", conf={"spark.extraListeners": "no.such.Listener"})
    site = make_site(tmp_path, PlatformSpec(compute={"default": broken}))
    with pytest.raises(SparkNotStartedError, match=r"(?s)no\.such\.Listener.*spark\.log"):
        ensure_server(site)
    assert [file.name for file in ServerFiles(site).folder.iterdir()] == ["lock"]
    assert server_status(site).state == "stopped"


@pytest.mark.parametrize("token", ["", "/;token=wrong"])
def test_a_client_without_the_token_is_refused(
    spark_site: Site, spark_server: Server, token: str
) -> None:
    intruder = replace(spark_server, url=f"{spark_server.address}{token}")
    with pytest.raises(SparkRefusedError, match="authentication token"):
        open_session(spark_site, intruder)


def test_a_foreign_server_is_used_but_not_managed(tmp_path: Path, spark_server: Server) -> None:
    token = spark_server.url.partition("token=")[2]
    theirs = Compute(url=spark_server.address, token=SecretRef("env", "SPARK_TOKEN"))
    plain = make_site(tmp_path, PlatformSpec(compute={"default": theirs}))
    site = replace(plain, environ={"SPARK_TOKEN": token})
    session = open_session(site)
    assert session.conf.get("spark.sql.catalog.lake.table-override.write.wap.enabled") == "true"
    assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    close_session(session)
    assert server_status(site).state == "foreign"
    with pytest.raises(NoOwnServerError, match="floe does not manage the Spark server at"):
        stop_server(site)
