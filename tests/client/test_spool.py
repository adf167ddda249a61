"""Messages queued on disk: in order, complete and within the limit."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from floe.client import spool as spool_module
from floe.client.spool import Spool, SpoolFullError

MANY = 1000
API = "http://floe.example.com"


@pytest.fixture
def spool(host: Path) -> Spool:
    return Spool(host / "spool", API, limit=1_000_000)


def drain(spool: Spool, most: int = 10) -> list[bytes]:
    bodies: list[bytes] = []
    with spool.delivering(wait=True):
        while waiting := spool.next(most):
            bodies += waiting.bodies
            spool.advance(waiting.segment, waiting.ends[-1])
    return bodies


def test_messages_are_delivered_in_order(spool: Spool) -> None:
    bodies = [f'{{"n":{index}}}'.encode() for index in range(25)]
    for body in bodies:
        spool.append(body)
    assert spool.count_waiting() == 25
    assert drain(spool) == bodies


def test_a_delivered_spool_leaves_no_message_files(spool: Spool) -> None:
    spool.append(b"{}")
    drain(spool)
    assert not [*spool.folder.glob("*.ndjson"), *spool.folder.glob("*.done")]


def test_a_long_queue_has_several_files_that_are_removed_on_delivery(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "SEGMENT_BYTES", 20)
    for index in range(9):
        spool.append(b'{"n":%d}' % index)
    before = len(list(spool.folder.glob("*.ndjson")))
    with spool.delivering(wait=True):
        waiting = spool.next(MANY)
        assert waiting is not None
        spool.advance(waiting.segment, waiting.ends[-1])
    assert len(list(spool.folder.glob("*.ndjson"))) == before - 1
    assert drain(spool)[-1] == b'{"n":8}'


def test_a_message_knows_when_it_is_done(spool: Spool) -> None:
    first, second = spool.append(b"1"), spool.append(b"2")
    with spool.delivering(wait=True):
        waiting = spool.next(1)
        assert waiting is not None
        spool.advance(waiting.segment, waiting.ends[0])
    assert spool.is_done(first)
    assert not spool.is_done(second)
    drain(spool)
    assert spool.is_done(second)


def test_a_half_written_message_of_a_killed_process_is_cut_off(spool: Spool) -> None:
    ticket = spool.append(b"whole")
    with ticket.segment.open("ab") as file:
        file.write(b"half of a mess")
    spool.append(b"next")
    assert drain(spool) == [b"whole", b"next"]


def test_delivery_removes_a_half_written_message_at_the_end(spool: Spool) -> None:
    ticket = spool.append(b"whole")
    with ticket.segment.open("ab") as file:
        file.write(b"half")
    assert drain(spool) == [b"whole"]
    assert spool.bytes_waiting() == 0


@pytest.mark.parametrize("content", [b"", b"nonsense", b"99999", b"-4"])
def test_an_invalid_offset_delivers_from_the_start(spool: Spool, content: bytes) -> None:
    ticket = spool.append(b"again")
    ticket.segment.with_suffix(".done").write_bytes(content)
    assert drain(spool) == [b"again"]


def test_a_full_spool_raises_and_accepts_messages_after_delivery(host: Path) -> None:
    spool = Spool(host / "spool", API, limit=100)
    spool.append(b"x" * 60)
    with pytest.raises(SpoolFullError, match="increase FLOE_SPOOL_LIMIT"):
        spool.append(b"y" * 60)
    drain(spool)
    spool.append(b"y" * 60)


def test_a_disk_that_fills_up_leaves_no_half_message(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.append(b"before")

    def write_a_part(descriptor: int, content: bytes) -> None:
        os.write(descriptor, content[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(spool_module, "_write", write_a_part)
        with pytest.raises(OSError, match="No space"):
            spool.append(b"lost")
    spool.append(b"after")
    assert drain(spool) == [b"before", b"after"]


def test_threads_and_processes_share_a_spool(spool: Spool) -> None:
    def add(worker: int) -> None:
        mine = Spool(spool.folder.parent, API, limit=1_000_000)
        for index in range(20):
            mine.append(b"%d.%d" % (worker, index))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    bodies = drain(spool)
    assert len(bodies) == len(set(bodies)) == 80
    for worker in range(4):
        own = [body for body in bodies if body.startswith(b"%d." % worker)]
        assert own == [b"%d.%d" % (worker, index) for index in range(20)]


def test_only_one_process_delivers_at_a_time(spool: Spool) -> None:
    spool.append(b"{}")
    with (
        spool.delivering(wait=False) as first,
        Spool(spool.folder.parent, API, 1000).delivering(wait=False) as second,
    ):
        assert (first, second) == (True, False)


def test_other_users_cannot_read_spooled_messages(spool: Spool) -> None:
    ticket = spool.append(b"{}")
    assert ticket.segment.stat().st_mode & 0o077 == 0
    assert spool.folder.stat().st_mode & 0o077 == 0


def test_permissions_of_a_readable_spool_are_fixed_with_the_next_message(spool: Spool) -> None:
    ticket = spool.append(b"{}")
    spool.folder.chmod(0o755)
    ticket.segment.chmod(0o644)
    spool.append(b"{}")
    assert [path.stat().st_mode & 0o777 for path in (spool.folder, ticket.segment)] == [
        0o700,
        0o600,
    ]


def test_a_refused_message_is_saved_with_its_reason(spool: Spool) -> None:
    spool.append(b'{"bad":1}')
    spool.refuse(b'{"bad":1}', "422: $.run is missing")
    assert spool.is_refused(b'{"bad":1}')
    assert spool.reason_of(b'{"bad":1}') == "422: $.run is missing"
    assert spool.count_refused() == 1


def test_spooled_messages_of_an_api_are_invisible_to_another(spool: Spool) -> None:
    other = Spool(spool.folder.parent, "http://other.example.com", limit=1_000_000)
    spool.append(b"ours")
    other.append(b"theirs")
    assert drain(other) == [b"theirs"]
    assert drain(spool) == [b"ours"]


def test_messages_for_other_apis_are_counted(spool: Spool) -> None:
    other = Spool(spool.folder.parent, "http://other.example.com", limit=1_000_000)
    spool.append(b"1")
    assert other.others() == [(API, 1)]
    assert spool.others() == []


@pytest.mark.parametrize("recipient", ["http://x/" + "a" * 5000, "/srv/\u00e9t\u00e9/../x\ny", ""])
def test_every_recipient_has_its_own_folder(host: Path, recipient: str) -> None:
    spool = Spool(host / "spool", recipient, limit=1_000_000)
    spool.append(b"1")
    assert spool.folder.parent == host / "spool"
    assert Spool(host / "spool", "http://another", 1000).others() == [(recipient, 1)]
