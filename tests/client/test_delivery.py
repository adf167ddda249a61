"""Reports are delivered to the API, or queued on disk in order."""

import errno
import logging
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from floe.client import Client, State, register_dataset, register_process
from floe.client import outbox as outbox_module
from floe.client import spool as spool_module
from tests.client.fake_api import FakeApi

JOB = "AUTOSYS/EOD/LOAD"


def nobody() -> str:
    """Return the address of an API that is down."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}"


@pytest.fixture
def down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOE_API_URL", nobody())


def waiting() -> int:
    return Client().spool.count_waiting()


def spool_some(api: FakeApi, count: int) -> None:
    """Register datasets while the API is overloaded."""
    api.gate = lambda: (503, {})
    for index in range(count):
        delivery = Client().register_dataset(f"night.t{index}", "1")
        assert delivery.state is State.SPOOLED
    api.gate = lambda: None
    api.posts.clear()


def names(api: FakeApi) -> list[str]:
    return [event["outputs"][0]["name"] for event in api.taken]


def test_a_delivered_report_leaves_nothing_in_the_spool(api: FakeApi) -> None:
    delivery = register_dataset("credit.positions", "v1", rows=10)
    assert delivery.delivered
    assert delivery.run_id == api.taken[0]["run"]["runId"]
    assert waiting() == 0


def test_the_token_is_sent(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOE_API_TOKEN", "secret")
    register_dataset("credit.positions")
    assert api.tokens == ["Bearer secret"]


def test_the_lake_of_the_environment_is_the_namespace(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOE_LAKE", "risk-lake")
    register_dataset("credit.positions")
    assert api.taken[0]["outputs"][0]["namespace"] == "risk-lake"


@pytest.mark.usefixtures("down")
def test_a_report_waits_on_disk_while_the_api_is_down(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        delivery = register_dataset("credit.positions", "v1")
    assert delivery.state is State.SPOOLED
    assert waiting() == 1
    assert "saved on disk, not delivered yet" in caplog.text
    assert "Connection refused" in caplog.text


def test_a_new_report_delivers_earlier_ones_first(api: FakeApi) -> None:
    spool_some(api, 3)
    assert register_dataset("night.last", "1").delivered
    assert names(api) == ["night.t0", "night.t1", "night.t2", "night.last"]
    assert api.posts == ["/api/v1/lineage/batch"]


def test_the_spool_can_be_delivered_explicitly(api: FakeApi) -> None:
    spool_some(api, 2)
    drained = Client().deliver()
    assert (drained.delivered, drained.refused, drained.waiting) == (2, 0, 0)
    assert names(api) == ["night.t0", "night.t1"]


def test_an_api_without_batches_gets_one_event_at_a_time(api: FakeApi) -> None:
    spool_some(api, 3)
    api.has_batches = False
    assert Client().deliver().delivered == 3
    assert names(api) == ["night.t0", "night.t1", "night.t2"]


@pytest.mark.parametrize("status", [401, 403, 404, 408, 421, 429, 500, 503])
def test_a_report_is_kept_if_the_failure_is_not_its_fault(api: FakeApi, status: int) -> None:
    api.gate = lambda: (status, {"detail": "not now"})
    assert register_dataset("credit.positions").state is State.SPOOLED
    assert register_dataset("credit.positions").state is State.SPOOLED
    api.gate = lambda: None
    assert Client().deliver().delivered == 2


def test_a_rejected_token_is_reported_and_nothing_is_lost(api: FakeApi) -> None:
    api.gate = lambda: (401, {})
    delivery = Client(token="old").register_dataset("credit.positions")
    assert delivery.state is State.SPOOLED
    assert "rejected the token (401)" in delivery.reason
    assert "requires a token" in Client().register_dataset("credit.positions").reason


def test_a_refused_report_is_saved_and_blocks_no_other(api: FakeApi) -> None:
    def refuse_the_second(event: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        bad = event["outputs"][0]["name"] == "night.t1"
        return (422, {"detail": "$.job: is wrong"}) if bad else None

    spool_some(api, 3)
    api.judge = refuse_the_second
    drained = Client().deliver()
    assert (drained.delivered, drained.refused, drained.waiting) == (2, 1, 0)
    assert names(api) == ["night.t0", "night.t2"]
    (saved,) = (Client().spool.folder / "refused").glob("*.json")
    assert "$.job: is wrong" in saved.read_text()
    assert "night.t1" in saved.read_text()


def test_a_caller_learns_that_its_own_report_was_refused(api: FakeApi) -> None:
    api.judge = lambda _: (400, {"detail": "The body is not JSON."})
    delivery = register_dataset("credit.positions")
    assert delivery.state is State.REFUSED
    assert "The body is not JSON." in delivery.reason
    assert waiting() == 0


def test_a_busy_server_in_the_middle_of_a_batch_keeps_the_order(api: FakeApi) -> None:
    def busy_at_the_second(event: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        return (503, {}) if event["outputs"][0]["name"] == "night.t1" else None

    spool_some(api, 4)
    api.judge = busy_at_the_second
    assert Client().deliver().waiting == 3
    api.judge = lambda _: None
    Client().deliver()
    assert sorted(names(api)) == ["night.t0", "night.t1", "night.t2", "night.t3"]


def test_with_a_full_disk_the_report_is_sent_at_once(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "_write", no_space)
    delivery = register_dataset("credit.positions")
    assert delivery.delivered
    assert "No space left" in delivery.reason
    assert len(api.taken) == 1


@pytest.mark.usefixtures("down")
def test_a_full_disk_and_no_api_is_a_warning_and_the_job_continues(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(spool_module, "_write", no_space)
    assert register_dataset("credit.positions").state is State.LOST
    assert "LOST, neither delivered nor saved on disk" in caplog.text


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.usefixtures("down")
def test_a_full_spool_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOE_SPOOL_LIMIT", "1K")
    states = [register_dataset("credit.positions").state for _ in range(4)]
    assert states[0] is State.SPOOLED
    assert states[-1] is State.LOST
    assert "increase FLOE_SPOOL_LIMIT" in register_dataset("a.b").reason


def test_a_spool_that_cannot_be_created_does_not_stop_the_job(api: FakeApi, host: Path) -> None:
    (host / "file").write_text("")
    delivery = Client(spool=host / "file" / "spool").register_dataset("credit.positions")
    assert delivery.delivered
    assert len(api.taken) == 1


@pytest.mark.parametrize("url", ["floe.example.com", "ftp://x", "http://", "http://[::1"])
def test_an_invalid_address_keeps_the_report_and_is_reported(url: str) -> None:
    delivery = Client(url).register_dataset("credit.positions")
    assert delivery.state is State.SPOOLED
    assert url in delivery.reason


def test_a_reason_never_contains_the_token() -> None:
    delivery = Client(nobody(), token="sec\nret").register_dataset("credit.positions")
    assert "sec" not in delivery.reason.replace("FLOE_API_TOKEN", "")


def test_after_a_time_out_the_next_calls_do_not_wait_too(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.delay = 0.5
    assert Client(timeout=0.05).register_dataset("a.b").state is State.SPOOLED
    api.delay = 0
    second = Client(timeout=5).register_dataset("a.c")
    assert second.state is State.SPOOLED
    assert second.reason == "the server timed out less than 30 seconds ago"
    monkeypatch.setattr(outbox_module, "PAUSE", 0.0)
    assert Client().register_dataset("a.d").delivered
    assert waiting() == 0


def test_insist_ignores_the_pause_after_a_time_out(api: FakeApi) -> None:
    api.delay = 0.5
    Client(timeout=0.05).register_dataset("a.b")
    api.delay = 0
    assert Client(insist=True).register_dataset("a.c").delivered


def test_a_call_stops_delivering_a_long_queue_after_its_timeout(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "BATCH", 1)
    spool_some(api, 5)
    api.delay = 0.6
    delivery = Client(timeout=2).register_dataset("a.b")
    assert delivery.state is State.SPOOLED
    assert delivery.reason == "the queue is long; later calls deliver the rest"
    assert 1 <= len(api.taken) < 5


def test_a_path_that_is_not_unicode_is_reported(api: FakeApi) -> None:
    assert register_dataset("night.t", path="/data/\udcff.csv").delivered
    assert api.taken[0]["outputs"][0]["facets"]["path"]["path"] == "/data/?.csv"


def test_several_processes_deliver_each_report_once_and_in_order(api: FakeApi) -> None:
    """The server is busy for every third request."""
    count, turn = iter(range(10_000)), threading.Lock()

    def often_busy() -> tuple[int, dict[str, Any]] | None:
        with turn:
            return (503, {}) if next(count) % 3 == 1 else None

    api.gate = often_busy
    script = (
        "import sys; from floe.client import Client\n"
        "client = Client(warn=lambda _: None)\n"
        "for n in range(15): client.register_dataset(f'p{sys.argv[1]}.t{n:02}', '1')\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", script, str(n)]) for n in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    api.gate = lambda: None
    Client().deliver()
    delivered = names(api)
    assert len(delivered) == len(set(delivered)) == 45
    for worker in range(3):
        own = [name for name in delivered if name.startswith(f"p{worker}.")]
        assert own == sorted(own)


def test_reports_of_a_process_share_its_open_run(api: FakeApi) -> None:
    register_process(JOB, "STARTED")
    register_process("AUTOSYS/EOD/OTHER", "STARTED")
    register_process(JOB, "RUNNING")
    register_process(JOB, "SUCCESS")
    register_process(JOB, "STARTED")
    first, other, running, ended, second = (event["run"]["runId"] for event in api.taken)
    assert first == running == ended
    assert len({first, other, second}) == 3


def test_a_run_id_of_the_caller_or_the_environment_takes_precedence(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_process(JOB, "STARTED")
    named = "00000000-0000-0000-0000-000000000001"
    register_process(JOB, "SUCCESS", run_id=named)
    monkeypatch.setenv("FLOE_RUN_ID", "00000000-0000-0000-0000-000000000002")
    register_process(JOB, "FAILED", error="no feed")
    assert [event["run"]["runId"] for event in api.taken[1:]] == [
        named,
        "00000000-0000-0000-0000-000000000002",
    ]


def test_an_end_without_a_start_is_a_separate_run(api: FakeApi) -> None:
    assert register_process(JOB, "SUCCESS").run_id != register_process(JOB, "SUCCESS").run_id
    assert len(api.taken) == 2


def test_a_host_without_the_floe_command_delivers_with_python(api: FakeApi) -> None:
    spool_some(api, 2)

    def run(command: str) -> "subprocess.CompletedProcess[str]":
        line = [sys.executable, "-m", "floe.client", command]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    assert "2 waiting, 0 refused" in run("status").stdout
    delivered = run("deliver")
    assert (delivered.returncode, delivered.stdout) == (0, "2 delivered, 0 refused, 0 waiting\n")
    assert names(api) == ["night.t0", "night.t1"]
    assert run("dance").returncode == 2


def test_threads_may_share_a_client(api: FakeApi) -> None:
    client = Client(insist=True)

    def report(index: int) -> bool:
        return client.register_dataset(f"night.t{index:02}", "1").delivered

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(report, range(20)))
    assert len(set(names(api))) == 20


def test_a_full_spool_has_room_again_once_the_api_is_up(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOE_SPOOL_LIMIT", "1200")
    spool_some(api, 1)
    assert register_dataset("night.t1", "1").delivered
    assert names(api) == ["night.t0", "night.t1"]


def test_reports_spooled_for_an_api_are_never_delivered_to_another(api: FakeApi) -> None:
    spool_some(api, 2)
    with FakeApi() as other:
        assert Client(other.url).register_dataset("night.other", "1").delivered
        drained = Client(other.url).deliver()
        assert (drained.delivered, drained.waiting) == (0, 0)
        assert names(other) == ["night.other"]
        assert Client(other.url).spool.others() == [(api.url, 2)]
    assert Client().deliver().delivered == 2
    assert names(api) == ["night.t0", "night.t1"]


def test_a_trailing_slash_of_an_address_does_not_matter(api: FakeApi) -> None:
    spool_some(api, 1)
    assert Client(f"{api.url}/").deliver().delivered == 1


def test_the_spool_of_a_project_does_not_depend_on_the_port_of_its_api(
    host: Path,
) -> None:
    (host / ".floe").mkdir()
    assert Client().register_dataset("night.t", "1").state is State.SPOOLED
    with FakeApi() as api:
        (host / ".floe" / "address").write_text(api.url)
        assert Client().deliver().delivered == 1
    assert names(api) == ["night.t"]


def test_open_runs_are_stored_per_api(api: FakeApi) -> None:
    first = register_process(JOB, "STARTED")
    with FakeApi() as other:
        assert Client(other.url).register_process(JOB, "SUCCESS").run_id != first.run_id
    assert register_process(JOB, "SUCCESS").run_id == first.run_id
