"""Loading a file of events: whole, in parts, with bad lines in it, and never twice."""

import gzip
import itertools
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from floe.catalog.database import Catalog
from floe.catalog.events import ImportRecorder
from floe.catalog.recording import CatalogUnavailableError
from floe.events import bulk
from floe.events.bulk import EventFileError, Rejected, Watcher, identify, import_events
from tests.events.factory import FOREVER, at, event, written
from tests.events.state import state_of


def day(number: int) -> list[bytes]:
    """A run of a process on a day."""
    run, start = f"run {number}", 60 * 24 * number
    output = written("credit.exposure", columns=["client", "amount"], rows=number)
    return [
        event("START", at(start), run),
        event("COMPLETE", at(start + 5), run, outputs=[output]),
    ]


DAYS = [line for number in range(6) for line in day(number)]


def write(path: Path, lines: Sequence[bytes]) -> Path:
    content = b"".join(line + b"\n" for line in lines)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.fixture(params=["events.ndjson", "events.ndjson.gz"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(tmp_path / request.param, DAYS)


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "EVENTS_IN_GROUP", 3)


def counts(catalog: Catalog) -> dict[str, int]:
    return {name: len(rows) for name, rows in state_of(catalog).items()}


def rejected(catalog: Catalog, file: Path) -> list[Rejected]:
    found: list[Rejected] = []
    report = import_events(catalog, file, watcher=Watcher(on_reject=found.append))
    assert report.rejected == len(found)
    return found


def test_a_file_fills_history_and_triggers_nothing(catalog: Catalog, file: Path) -> None:
    report = import_events(catalog, file)
    assert (report.lines, report.rejected, report.was_done) == (12, 0, False)
    found = counts(catalog)
    assert (found["events"], found["runs"], found["versions"]) == (12, 6, 6)
    assert found["changes"] == 0


def test_a_live_import_is_news(catalog: Catalog, file: Path) -> None:
    import_events(catalog, file, historical=False, retention=FOREVER)
    assert counts(catalog)["changes"] == 6


def test_what_is_older_than_retention_is_no_news_in_a_live_import_either(
    catalog: Catalog, file: Path
) -> None:
    import_events(catalog, file, historical=False, retention=timedelta(days=1))
    found = counts(catalog)
    assert (found["versions"], found["changes"]) == (6, 0)


def test_the_same_file_again_is_known_wherever_it_lies(catalog: Catalog, file: Path) -> None:
    import_events(catalog, file)
    before = state_of(catalog)
    moved = file.rename(file.with_name("moved"))
    report = import_events(catalog, moved)
    assert report.was_done
    assert (report.lines, report.lines_now) == (12, 0)
    assert state_of(catalog) == before


def test_a_file_with_one_byte_changed_is_another(tmp_path: Path) -> None:
    first = write(tmp_path / "a", DAYS)
    second = write(tmp_path / "b", [DAYS[0].replace(b"START", b"ABORT"), *DAYS[1:]])
    assert first.stat().st_size == second.stat().st_size
    assert identify(first) != identify(second)


@pytest.mark.usefixtures("small_groups")
def test_an_import_that_was_stopped_goes_on_where_it_was(
    catalog: Catalog, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after_groups(2, KeyboardInterrupt(), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        import_events(catalog, file)
    assert counts(catalog)["events"] == 6
    monkeypatch.undo()
    report = import_events(catalog, file)
    assert (report.resumed_at, report.lines_now, report.lines) == (6, 6, 12)
    assert counts(catalog)["versions"] == 6


def stop_after_groups(count: int, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a group fail with its transaction, after so many were committed."""
    groups, record = itertools.count(), ImportRecorder.record

    def record_or_stop(self: Any, connection: Any, claims: Any, now: datetime) -> None:
        record(self, connection, claims, now)
        if next(groups) >= count:
            raise error

    monkeypatch.setattr(ImportRecorder, "record", record_or_stop)


@pytest.mark.usefixtures("small_groups")
def test_the_place_is_committed_with_the_events_or_not_at_all(
    catalog: Catalog, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in range(4):
        stop_after_groups(1, CatalogUnavailableError("away"), monkeypatch)
        with pytest.raises(CatalogUnavailableError):
            import_events(catalog, file)
        monkeypatch.undo()
        monkeypatch.setattr(bulk, "EVENTS_IN_GROUP", 3)
        assert counts(catalog)["events"] == min(3 * (count + 1), 12)
        if count == 2:
            break
    assert import_events(catalog, file).lines_now == 3


def test_bad_lines_are_named_with_their_reasons_and_harm_no_other(
    catalog: Catalog, tmp_path: Path
) -> None:
    lines = [DAYS[0], b"not json", b"", b'{"eventType":"NOPE","run":{}}', DAYS[1], b"[]"]
    found = rejected(catalog, write(tmp_path / "events", lines))
    assert [one.line for one in found] == [2, 4, 6]
    assert "not JSON" in str(found[0])
    assert str(found[1]).startswith("line 4: $.eventType: must be one of START, RUNNING")
    assert "$.run.runId: is missing" in found[1].reason
    assert counts(catalog)["events"] == 2


@pytest.mark.parametrize(
    "catalog", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True
)
def test_what_the_database_refuses_is_a_rejected_line_too(catalog: Catalog, tmp_path: Path) -> None:
    """U+0000, which PostgreSQL has no text for."""
    bad = DAYS[2].replace(b'"name": "exposure"', b'"name": "a\\u0000b"')
    assert bad != DAYS[2]
    found = rejected(catalog, write(tmp_path / "events", [*DAYS[:2], bad, *DAYS[3:]]))
    assert [one.line for one in found] == [3]
    assert counts(catalog)["events"] == 11
    assert import_events(catalog, tmp_path / "events").rejected == 1


def test_a_line_whose_text_is_none_stops_no_import(catalog: Catalog, tmp_path: Path) -> None:
    odd = DAYS[2].replace(b'"producer": "', b'"producer": "\xff')
    assert odd != DAYS[2]
    (found,) = rejected(catalog, write(tmp_path / "events", [*DAYS[:2], odd, *DAYS[3:]]))
    assert (found.line, "not JSON" in found.reason) == (3, True)
    assert counts(catalog)["events"] == 11


def test_a_line_that_is_too_long_is_skipped(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "LONGEST_LINE", 3_000)
    found = rejected(catalog, write(tmp_path / "events", [DAYS[0], b"x" * 9_000, DAYS[1]]))
    assert [str(one) for one in found] == ["line 2: It is longer than 3,000 bytes."]
    assert counts(catalog)["events"] == 2


def test_lines_of_windows_and_a_last_line_without_an_end_are_read(
    catalog: Catalog, tmp_path: Path
) -> None:
    file = tmp_path / "events"
    file.write_bytes(DAYS[0] + b"\r\n" + DAYS[1])
    assert rejected(catalog, file) == []
    assert counts(catalog)["events"] == 2


def test_a_file_that_is_cut_off_is_imported_up_to_there(catalog: Catalog, tmp_path: Path) -> None:
    noise = [b"%b" % random.Random(number).randbytes(900).hex().encode() for number in range(40)]
    whole = write(tmp_path / "events.gz", [*DAYS, *noise])
    content = whole.read_bytes()
    whole.write_bytes(content[: len(content) // 2])
    with pytest.raises(EventFileError, match="after line"):
        import_events(catalog, whole)
    assert counts(catalog)["events"] == 12


def test_an_empty_file_is_nothing_to_do(catalog: Catalog, tmp_path: Path) -> None:
    report = import_events(catalog, write(tmp_path / "events", []))
    assert (report.lines, report.was_done) == (0, False)


def test_progress_goes_up_to_the_size_of_the_file(catalog: Catalog, file: Path) -> None:
    seen: list[int] = []
    import_events(catalog, file, watcher=Watcher(on_bytes=seen.append))
    assert seen[-1] == file.stat().st_size
