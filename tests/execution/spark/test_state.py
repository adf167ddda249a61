"""What is remembered of a server, and what is not believed."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from floe import clock
from floe.execution.spark.place import ServerPlace
from floe.execution.spark.processes import start_of
from floe.execution.spark.server import ensure_server, server_status, stop_server
from floe.execution.spark.state import Running, read_state, write_state
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
def place(tmp_path: Path) -> ServerPlace:
    return ServerPlace(make_site(tmp_path))


def test_what_is_written_is_read_again_and_private(place: ServerPlace) -> None:
    write_state(place, RUNNING)
    assert read_state(place) == RUNNING
    assert place.state.stat().st_mode & 0o777 == 0o600
    assert "t0ken" not in repr(RUNNING)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"started_at": "soon"}'])
def test_a_file_that_cannot_be_read_is_no_server(place: ServerPlace, text: str) -> None:
    place.folder.mkdir(parents=True)
    place.state.write_text(text)
    assert read_state(place) is None


def test_what_another_version_noted_besides_does_no_harm(place: ServerPlace) -> None:
    write_state(place, RUNNING)
    found = json.loads(place.state.read_text())
    place.state.write_text(json.dumps({**found, "colour": "blue"}))
    assert read_state(place) == RUNNING


def test_a_number_that_another_process_has_now_is_a_dead_server(place: ServerPlace) -> None:
    write_state(place, RUNNING)
    place.log.parent.mkdir(parents=True)
    place.output.write_text("Terminating due to java.lang.OutOfMemoryError: Java heap space\n")
    status = server_status(place.site)
    assert (status.state, status.pid) == ("died", None)
    assert status.said == ("Terminating due to java.lang.OutOfMemoryError: Java heap space",)
    assert stop_server(place.site) is False
    assert server_status(place.site).state == "stopped"


def test_a_running_server_is_used_without_a_lock_or_a_look_at_java(place: ServerPlace) -> None:
    from floe.execution.spark.settings import fingerprint

    running = replace(
        RUNNING, start=start_of(os.getpid()) or "", fingerprint=fingerprint(place.site)
    )
    write_state(place, running)
    server = ensure_server(place.site)
    assert server.address == "sc://localhost:1"
    assert server.url == "sc://localhost:1/;token=t0ken"
    assert "t0ken" not in repr(server)
    assert not place.lock.exists()


def test_a_server_with_other_settings_is_said_to_be_outdated(place: ServerPlace) -> None:
    write_state(place, replace(RUNNING, start=start_of(os.getpid()) or ""))
    assert server_status(place.site).outdated


def test_other_profiles_have_servers_of_their_own(tmp_path: Path) -> None:
    platform = PlatformSpec(compute={"default": Compute(), "big": Compute(memory="8g")})
    site = make_site(tmp_path, platform)
    assert ServerPlace(site, "default").state == ServerPlace(site).state
    assert ServerPlace(site, "big").state == tmp_path / ".floe" / "spark" / "big" / "server.json"
    assert ServerPlace(site, "big").log.name == "spark-big.log"
