"""The client and a real `floe api`: reports made while it was down arrive once."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from floe.catalog import find_dataset, list_versions, open_catalog
from floe.client import Client, State
from tools.processes import running

SERVE = "import typer; from floe.cli.api import api; typer.run(api)"


@contextmanager
def floe_api(folder: Path, port: int = 0) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Run `floe api` in a folder; yield its address and process."""
    command = [sys.executable, "-c", SERVE, "--port", str(port)]
    with running(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("floe api is at "), line
        yield line.split()[-1], process


def tags(folder: Path) -> dict[str, list[str]]:
    """Return the versions in the catalog of a folder, by dataset."""
    catalog = open_catalog(f"sqlite:///{folder / '.floe' / 'catalog.db'}")
    with catalog.reading() as session:
        versions = {
            name: [
                version.version_tag
                for version in list_versions(session, find_dataset(session, name).dataset_id)
            ]
            for name in ("night.t0", "night.t1", "night.t2", "night.t3")
        }
    catalog.close()
    return versions


@pytest.mark.slow
def test_reports_survive_a_killed_and_restarted_api(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with floe_api(host) as (url, process):
        monkeypatch.setenv("FLOE_API_URL", url)
        assert Client().register_dataset("night.t0", "v1", rows=1).delivered
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        for index in (1, 2):
            delivery = Client().register_dataset(f"night.t{index}", "v1")
            assert delivery.state is State.SPOOLED
    with floe_api(host, port=int(url.rpartition(":")[2])):
        drained = Client().deliver()
        assert (drained.delivered, drained.waiting) == (2, 0)
        assert Client().register_dataset("night.t2", "v1").delivered
        assert Client().register_dataset("night.t3", "v1").delivered
        stranger = Client(token="nobody").register_dataset("night.t3", "v2")
        assert stranger.state is State.SPOOLED
        assert "rejected the token (401)" in stranger.reason
    assert tags(host) == {f"night.t{index}": ["v1"] for index in range(4)}


@pytest.mark.slow
def test_an_event_that_the_door_refuses_is_saved(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with floe_api(host) as (url, _):
        monkeypatch.setenv("FLOE_API_URL", url)
        client = Client()
        refused = client.send({"run": {"runId": "1"}, "eventType": "NOPE"})
        assert refused.state is State.REFUSED
        assert "$.eventType" in refused.reason
        for index in range(3):
            client.spool.append(b'{"job":{}}' if index == 1 else b'{"eventTime":"x"}')
        client.spool.append(
            b'{"eventTime":"2026-09-01T06:00:00Z","job":{"namespace":"A","name":"B"}}'
        )
        drained = client.deliver()
    assert (drained.delivered, drained.refused, drained.waiting) == (1, 3, 0)
