"""Leases have one holder, are renewed, and are released when the holder is dead."""

import os
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

from floe.catalog import Catalog
from floe.catalog.leases import acquire_lease, read_lease, release_lease
from floe.execution import leases
from floe.execution.leases import LeaseKeeper, LeaseLostError, LeaseTakenError
from floe.execution.os_processes import is_dead, new_holder

HOUR = timedelta(hours=1)


def test_a_run_that_is_in_progress_is_named_with_its_date() -> None:
    message = str(LeaseTakenError("run/floe/shop/totals/2026-09-01", "host7/4711/1/a"))
    assert message.startswith("'floe/shop/totals' already runs for 2026-09-01 (process 4711 on ")


def test_a_held_lease_is_refused_to_others_and_free_again_afterwards(catalog: Catalog) -> None:
    keeper = LeaseKeeper(catalog)
    with (
        keeper.hold("table/lake/a", wait=None),
        pytest.raises(LeaseTakenError, match="'lake/a' is in use"),
    ):
        keeper._take("table/lake/a", None)
    with keeper.hold("table/lake/a", wait=None):
        pass
    keeper.close()


def test_a_waiter_gets_the_lease_when_it_is_released(catalog: Catalog) -> None:
    keeper = LeaseKeeper(catalog)
    had: list[str] = []

    def wait() -> None:
        with keeper.hold("table/a", wait=HOUR):
            had.append("second")

    with keeper.hold("table/a", wait=None):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.5)
        assert had == []
    thread.join()
    assert had == ["second"]
    keeper.close()


def test_a_lease_of_a_dead_process_is_free_immediately(catalog: Catalog) -> None:
    code = "from floe.execution.os_processes import new_holder; print(new_holder())"
    gone = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    with catalog.writing() as session:
        assert acquire_lease(session, "table/a", gone, HOUR) is not None
    keeper = LeaseKeeper(catalog)
    with keeper.hold("table/a", wait=None) as held:
        assert held.fence == 2
    keeper.close()


def test_a_lease_is_renewed_while_it_is_held(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.05)
    keeper = LeaseKeeper(catalog)
    with keeper.hold("table/a", wait=None):
        with catalog.reading() as session:
            first = read_lease(session, "table/a")
        assert first is not None
        threading.Event().wait(0.5)
        with catalog.reading() as session:
            later = read_lease(session, "table/a")
        assert later is not None
        assert later.expires_at > first.expires_at
    keeper.close()


def test_a_lost_lease_raises_an_error(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.05)
    keeper = LeaseKeeper(catalog)
    with keeper.hold("table/a", wait=None) as held:
        with catalog.writing() as session:
            release_lease(session, "table/a", held.holder, held.fence)
            acquire_lease(session, "table/a", "elsewhere/1/1/x", HOUR)
        threading.Event().wait(0.5)
        with pytest.raises(LeaseLostError):
            held.check()
    keeper.close()


def test_this_process_is_alive_and_processes_of_other_hosts_count_as_alive() -> None:
    assert not is_dead(new_holder())
    assert not is_dead("another-host/1/1/x")
    host = new_holder().partition("/")[0]
    assert is_dead(f"{host}/{os.getpid()}/1/x")
