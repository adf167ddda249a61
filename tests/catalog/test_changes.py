"""The log of changes: gap-free, in commit order, read from a cursor."""

import random
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from floe.catalog.changes import (
    NewChange,
    last_position,
    list_changes,
    move_cursor,
    read_cursor,
    record_change,
    write_pending_changes,
)
from floe.catalog.database import Catalog

WRITERS = 6
ROUNDS = 20


class WriterFailedError(Exception):
    """A writer fails after its changes got their positions."""


def test_changes_get_positions_in_the_order_they_were_recorded(catalog: Catalog) -> None:
    with catalog.writing() as session:
        record_change(session, NewChange(kind="VERSION_READY"))
        record_change(session, NewChange(kind="VERSION_RETRACTED"))
    with catalog.reading() as session:
        changes = list_changes(session, after=0)
        assert [(change.position, change.kind) for change in changes] == [
            (1, "VERSION_READY"),
            (2, "VERSION_RETRACTED"),
        ]
        assert last_position(session) == 2


def test_a_rolled_back_writer_leaves_no_gap(catalog: Catalog) -> None:
    with pytest.raises(WriterFailedError):
        _write_and_fail(catalog)
    with catalog.writing() as session:
        record_change(session, NewChange(kind="KEPT"))
    with catalog.reading() as session:
        changes = list_changes(session, after=0)
        assert [(change.position, change.kind) for change in changes] == [(1, "KEPT")]


def test_changes_are_read_in_pages(catalog: Catalog) -> None:
    with catalog.writing() as session:
        for index in range(5):
            record_change(session, NewChange(kind="VERSION_READY", detail={"index": index}))
    with catalog.reading() as session:
        changes = list_changes(session, after=1, limit=2)
        assert [change.position for change in changes] == [2, 3]


def test_each_reader_has_its_own_cursor_that_never_moves_back(catalog: Catalog) -> None:
    with catalog.writing() as session:
        assert read_cursor(session, "triggers") == 0
        move_cursor(session, "triggers", 7)
    with catalog.writing() as session:
        move_cursor(session, "triggers", 3)
        assert read_cursor(session, "triggers") == 7
        assert read_cursor(session, "monitors") == 0


def test_no_reader_ever_skips_a_change_of_concurrent_writers(catalog: Catalog) -> None:
    with ThreadPoolExecutor(WRITERS + 2) as pool:
        writers = [pool.submit(_write, catalog, writer) for writer in range(WRITERS)]
        readers = [pool.submit(_follow, catalog, writers) for _ in range(2)]
        written = [kind for writer in writers for kind in writer.result()]
        seen = [reader.result() for reader in readers]
    assert seen[0] == seen[1]
    assert sorted(seen[0]) == sorted(written)


def _write_and_fail(catalog: Catalog) -> None:
    with catalog.writing() as session:
        record_change(session, NewChange(kind="LOST"))
        write_pending_changes(session)
        raise WriterFailedError


def _write(catalog: Catalog, writer: int) -> list[str]:
    """Commit some transactions and roll back others; return the committed kinds."""
    chance = random.Random(writer)
    committed = []
    for turn in range(ROUNDS):
        kinds = [f"{writer}/{turn}/{index}" for index in range(chance.randint(1, 3))]
        try:
            _write_once(catalog, kinds, chance)
        except WriterFailedError:
            continue
        committed += kinds
    return committed


def _write_once(catalog: Catalog, kinds: list[str], chance: random.Random) -> None:
    with catalog.writing() as session:
        for kind in kinds:
            record_change(session, NewChange(kind=kind))
        time.sleep(chance.random() * 0.004)
        write_pending_changes(session)
        # Positions are assigned but not committed yet: a reader must not skip them.
        time.sleep(chance.random() * 0.004)
        if chance.random() < 0.3:
            raise WriterFailedError


def _follow(catalog: Catalog, writers: Sequence[Future[list[str]]]) -> list[str]:
    """Read from a cursor until all writers are done; fail on a position out of order."""
    seen: list[str] = []
    finished = False
    while True:
        with catalog.reading() as session:
            changes = list_changes(session, after=len(seen), limit=7)
            positions = [change.position for change in changes]
            assert positions == list(range(len(seen) + 1, len(seen) + 1 + len(changes)))
            seen += [change.kind for change in changes]
        if not changes and finished:
            return seen
        time.sleep(0.002)
        finished = all(writer.done() for writer in writers)
