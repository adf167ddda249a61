"""Servers that tests start stop with their test, also when it fails."""

from pathlib import Path

import pytest

from tools.postgresql import PostgresqlServer
from tools.running_api import RunningApi


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.slow
def test_an_api_stops_with_its_block_even_if_the_block_fails(tmp_path: Path) -> None:
    pids = []

    def fail() -> None:
        with running(tmp_path) as api:
            pids.append(api.pid)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [pid for pid in pids if is_running(pid)] == []


@pytest.mark.slow
def test_an_api_that_does_not_start_gives_the_reason_and_is_gone(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        (tmp_path / "second").mkdir()
        second = RunningApi(tmp_path / "second", first.url)
        second.port = first.port
        with pytest.raises(RuntimeError, match="already in use"):
            second.start()
        with pytest.raises(AssertionError):
            _ = second.pid


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_server_that_does_not_start_is_gone_with_its_folder() -> None:
    server = PostgresqlServer({"no_such_setting": "on"})
    with pytest.raises(Exception, match="refused"), server:
        pass
    assert not Path(server._home).exists()


def running(folder: Path) -> RunningApi:
    return RunningApi(folder, f"sqlite:///{folder / 'catalog.db'}")
