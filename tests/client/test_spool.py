"""Messages that wait on disk: in order, whole, within their limit, whoever adds them."""

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
    found: list[bytes] = []
    with spool.delivering(wait=True):
        while waiting := spool.next(most):
            found += waiting.bodies
            spool.advance(waiting.segment, waiting.ends[-1])
    return found


def test_messages_come_out_in_the_order_they_went_in(spool: Spool) -> None:
    bodies = [f'{{"n":{number}}}'.encode() for number in range(25)]
    for body in bodies:
        spool.append(body)
    assert spool.count_waiting() == 25
    assert drain(spool) == bodies


def test_a_delivered_spool_leaves_no_files_of_messages(spool: Spool) -> None:
    spool.append(b"{}")
    drain(spool)
    assert not [*spool.folder.glob("*.ndjson"), *spool.folder.glob("*.done")]


def test_a_long_queue_is_several_files_and_frees_them_as_it_goes(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "SEGMENT_BYTES", 20)
    for number in range(9):
        spool.append(b'{"n":%d}' % number)
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


def test_what_a_killed_process_left_half_written_is_cut_off(spool: Spool) -> None:
    ticket = spool.append(b"whole")
    with ticket.segment.open("ab") as file:
        file.write(b"half of a mess")
    spool.append(b"next")
    assert drain(spool) == [b"whole", b"next"]


def test_half_a_message_alone_is_removed_by_who_delivers(spool: Spool) -> None:
    ticket = spool.append(b"whole")
    with ticket.segment.open("ab") as file:
        file.write(b"half")
    assert drain(spool) == [b"whole"]
    assert spool.bytes_waiting() == 0


@pytest.mark.parametrize("content", [b"", b"nonsense", b"99999", b"-4"])
def test_a_place_that_cannot_be_read_counts_from_the_start(spool: Spool, content: bytes) -> None:
    ticket = spool.append(b"again")
    ticket.segment.with_suffix(".done").write_bytes(content)
    assert drain(spool) == [b"again"]


def test_a_full_spool_says_so_and_takes_more_once_it_is_delivered(host: Path) -> None:
    spool = Spool(host / "spool", API, limit=100)
    spool.append(b"x" * 60)
    with pytest.raises(SpoolFullError, match="FLOE_SPOOL_LIMIT allows more"):
        spool.append(b"y" * 60)
    drain(spool)
    spool.append(b"y" * 60)


def test_a_disk_that_fills_up_leaves_no_half_message(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.append(b"before")

    def write_a_part(number: int, content: bytes) -> None:
        os.write(number, content[:3])
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
        for number in range(20):
            mine.append(b"%d.%d" % (worker, number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    found = drain(spool)
    assert len(found) == len(set(found)) == 80
    for worker in range(4):
        own = [body for body in found if body.startswith(b"%d." % worker)]
        assert own == [b"%d.%d" % (worker, number) for number in range(20)]


def test_only_one_delivers_at_a_time(spool: Spool) -> None:
    spool.append(b"{}")
    with (
        spool.delivering(wait=False) as first,
        Spool(spool.folder.parent, API, 1000).delivering(wait=False) as second,
    ):
        assert (first, second) == (True, False)


def test_others_may_not_read_what_waits(spool: Spool) -> None:
    ticket = spool.append(b"{}")
    assert ticket.segment.stat().st_mode & 0o077 == 0
    assert spool.folder.stat().st_mode & 0o077 == 0


def test_a_spool_that_others_could_read_is_closed_with_the_next_message(spool: Spool) -> None:
    ticket = spool.append(b"{}")
    spool.folder.chmod(0o755)
    ticket.segment.chmod(0o644)
    spool.append(b"{}")
    assert [path.stat().st_mode & 0o777 for path in (spool.folder, ticket.segment)] == [
        0o700,
        0o600,
    ]


def test_what_was_refused_is_kept_with_its_reason(spool: Spool) -> None:
    spool.append(b'{"bad":1}')
    spool.refuse(b'{"bad":1}', "422: $.run is missing")
    assert spool.is_refused(b'{"bad":1}')
    assert spool.reason_of(b'{"bad":1}') == "422: $.run is missing"
    assert spool.count_refused() == 1


def test_what_waits_for_one_api_is_not_seen_by_another(spool: Spool) -> None:
    other = Spool(spool.folder.parent, "http://other.example.com", limit=1_000_000)
    spool.append(b"ours")
    other.append(b"theirs")
    assert drain(other) == [b"theirs"]
    assert drain(spool) == [b"ours"]


def test_what_waits_for_others_is_counted(spool: Spool) -> None:
    other = Spool(spool.folder.parent, "http://other.example.com", limit=1_000_000)
    spool.append(b"1")
    assert other.others() == [(API, 1)]
    assert spool.others() == []


@pytest.mark.parametrize("recipient", ["http://x/" + "a" * 5000, "/srv/\u00e9t\u00e9/../x\ny", ""])
def test_any_recipient_has_a_folder_of_its_own(host: Path, recipient: str) -> None:
    spool = Spool(host / "spool", recipient, limit=1_000_000)
    spool.append(b"1")
    assert spool.folder.parent == host / "spool"
    assert Spool(host / "spool", "http://another", 1000).others() == [(recipient, 1)]
