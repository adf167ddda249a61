"""An event that fails does not affect the others: they are stored."""

import re
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import func, select

from floe.catalog import search_index
from floe.catalog.database import Catalog
from floe.catalog.recording import EventClaim, EventFailedError, observed_runs
from floe.catalog.tables import Dataset, RunEvent
from floe.events import ingest
from floe.events.ingest import EventDoor, read_claim
from tests.events.factory import at, event, written

POISON = "AUTOSYS/poison"


def stored(catalog: Catalog) -> int:
    with catalog.reading() as session:
        return session.scalars(select(func.count()).select_from(RunEvent)).one()


def night(size: int, poison: int) -> list[EventClaim]:
    """Claims of a group; one of them is by the job that makes floe fail."""
    jobs = ["poison" if index == poison else f"job {index}" for index in range(size)]
    return [read_claim(event("COMPLETE", at(n), f"run {n}", job)) for n, job in enumerate(jobs)]


def fail_on_poison(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    row = observed_runs._run_row

    def fail(recording: Any, claim: EventClaim, run: Any) -> Any:
        if claim.process_key == POISON:
            raise error
        return row(recording, claim, run)

    monkeypatch.setattr(observed_runs, "_run_row", fail)


@pytest.mark.parametrize("error", [TypeError("'int' object is not iterable"), RecursionError()])
def test_an_unexpected_error_fails_one_event_and_is_logged_with_its_id(
    catalog: Catalog,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    fail_on_poison(monkeypatch, error)
    with closing(EventDoor(catalog)) as door:
        wrong = door.submit(night(20, poison=7)).result(timeout=60)
        assert door.is_open
        assert door.submit([read_claim(event("START", at(0), "after"))]).result(timeout=60) == {}
    assert list(wrong) == [7]
    assert isinstance(wrong[7], EventFailedError)
    assert stored(catalog) == 20
    (logged,) = re.findall(r"error id (\w+)", caplog.text)
    assert logged in str(wrong[7])
    assert type(error).__name__ in caplog.text


def test_the_cache_does_not_keep_entries_of_a_failed_event(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as failing, closing(EventDoor(catalog)) as door:
        fail_on_poison(failing, KeyError("x"))
        claim = read_claim(event("COMPLETE", at(0), "1", "poison", outputs=[written("new.table")]))
        assert 0 in door.submit([claim]).result(timeout=60)
        failing.undo()
        assert door.submit([claim]).result(timeout=60) == {}
    with catalog.reading() as session:
        assert session.scalars(select(Dataset.name)).all() == ["new.table"]


def test_a_bug_while_decoding_an_event_fails_only_that_event(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise TypeError("a mistake")

    monkeypatch.setattr(ingest, "claims_of", fail)
    with pytest.raises(EventFailedError) as failed:
        read_claim(event("START", at(0)))
    assert failed.value.reason in caplog.text
    assert "a mistake" in caplog.text


def test_a_dataset_that_cannot_be_indexed_does_not_block_others(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    field = search_index._field

    def fail(*texts: str | None) -> str:
        if "broken" in texts:
            raise TypeError("not a text")
        return field(*texts)

    monkeypatch.setattr(search_index, "_field", fail)
    outputs = [written("good.one"), written("broken"), written("good.two")]
    with closing(EventDoor(catalog)) as door:
        claim = read_claim(event("COMPLETE", at(0), outputs=outputs))
        assert door.submit([claim]).result(timeout=60) == {}
    with catalog.reading() as session:
        left = search_index.list_unindexed(session)
        names = session.scalars(select(Dataset.name).where(Dataset.dataset_id.in_(left))).all()
    assert names == ["broken"]
    assert "could not be indexed" in caplog.text
