"""Import and export of event files: resumed, with invalid lines, never twice."""

import gzip
import itertools
import json
import random
import tracemalloc
from collections.abc import Sequence
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from floe import clock
from floe.catalog.database import Catalog, open_catalog
from floe.catalog.events import ImportRecorder
from floe.catalog.recording import CatalogUnavailableError, Recorder, record_group
from floe.catalog.run_events import EventFilter
from floe.events import event_files
from floe.events.event_files import (
    EventFileError,
    Rejected,
    Watcher,
    export_events,
    identify,
    import_events,
)
from floe.events.ingest import read_claim
from tests.events.factory import FOREVER, at, event, read, run_id, written
from tests.events.state import state_of


def day(index: int) -> list[bytes]:
    """Return an event of a process's run on a day."""
    run, start = f"run {index}", 60 * 24 * index
    output = written("credit.exposure", columns=["client", "amount"], rows=index)
    return [
        event("START", at(start), run),
        event("COMPLETE", at(start + 5), run, outputs=[output]),
    ]


DAYS = [line for index in range(6) for line in day(index)]


def write(path: Path, lines: Sequence[bytes]) -> Path:
    content = b"".join(line + b"\n" for line in lines)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.fixture(params=["events.ndjson", "events.ndjson.gz"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(tmp_path / request.param, DAYS)


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_files, "EVENTS_IN_GROUP", 3)


def counts(catalog: Catalog) -> dict[str, int]:
    return {name: len(rows) for name, rows in state_of(catalog).items()}


def rejected(catalog: Catalog, file: Path) -> list[Rejected]:
    rejections: list[Rejected] = []
    report = import_events(catalog, file, watcher=Watcher(on_reject=rejections.append))
    assert report.rejected == len(rejections)
    return rejections


def test_a_file_fills_history_and_triggers_nothing(catalog: Catalog, file: Path) -> None:
    report = import_events(catalog, file)
    assert (report.lines, report.rejected, report.was_done) == (12, 0, False)
    rows = counts(catalog)
    assert (rows["events"], rows["runs"], rows["versions"]) == (12, 6, 6)
    assert rows["changes"] == 0


def test_a_live_import_fires_triggers(catalog: Catalog, file: Path) -> None:
    import_events(catalog, file, historical=False, retention=FOREVER)
    assert counts(catalog)["changes"] == 6


def test_events_older_than_retention_are_historical_in_a_live_import_too(
    catalog: Catalog, file: Path
) -> None:
    import_events(catalog, file, historical=False, retention=timedelta(days=1))
    rows = counts(catalog)
    assert (rows["versions"], rows["changes"]) == (6, 0)


def test_the_same_file_is_recognised_at_another_path(catalog: Catalog, file: Path) -> None:
    import_events(catalog, file)
    before = state_of(catalog)
    moved = file.rename(file.with_name("moved"))
    report = import_events(catalog, moved)
    assert report.was_done
    assert (report.lines, report.lines_now) == (12, 0)
    assert state_of(catalog) == before


def test_a_file_with_one_byte_changed_is_a_different_file(tmp_path: Path) -> None:
    first = write(tmp_path / "a", DAYS)
    second = write(tmp_path / "b", [DAYS[0].replace(b"START", b"ABORT"), *DAYS[1:]])
    assert first.stat().st_size == second.stat().st_size
    assert identify(first) != identify(second)


@pytest.mark.usefixtures("small_groups")
def test_an_interrupted_import_resumes_where_it_stopped(
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
    """Make a group's transaction fail after a number of committed groups."""
    groups, record = itertools.count(), ImportRecorder.record

    def record_or_stop(self: Any, connection: Any, claims: Any, now: datetime) -> None:
        record(self, connection, claims, now)
        if next(groups) >= count:
            raise error

    monkeypatch.setattr(ImportRecorder, "record", record_or_stop)


@pytest.mark.usefixtures("small_groups")
def test_the_position_is_committed_with_the_events_or_not_at_all(
    catalog: Catalog, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in range(4):
        stop_after_groups(1, CatalogUnavailableError("away"), monkeypatch)
        with pytest.raises(CatalogUnavailableError):
            import_events(catalog, file)
        monkeypatch.undo()
        monkeypatch.setattr(event_files, "EVENTS_IN_GROUP", 3)
        assert counts(catalog)["events"] == min(3 * (count + 1), 12)
        if count == 2:
            break
    assert import_events(catalog, file).lines_now == 3


def test_invalid_lines_are_reported_with_reasons_and_do_not_affect_others(
    catalog: Catalog, tmp_path: Path
) -> None:
    lines = [DAYS[0], b"not json", b"", b'{"eventType":"NOPE","run":{}}', DAYS[1], b"[]"]
    rejections = rejected(catalog, write(tmp_path / "events", lines))
    assert [rejection.line for rejection in rejections] == [2, 4, 6]
    assert "not JSON" in str(rejections[0])
    assert str(rejections[1]).startswith("line 4: $.eventType: must be one of START, RUNNING")
    assert "$.run.runId: is missing" in rejections[1].reason
    assert counts(catalog)["events"] == 2


@pytest.mark.parametrize(
    "catalog", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True
)
def test_a_line_that_the_database_rejects_is_reported_too(catalog: Catalog, tmp_path: Path) -> None:
    """U+0000, which PostgreSQL cannot store."""
    bad = DAYS[2].replace(b'"name": "exposure"', b'"name": "a\\u0000b"')
    assert bad != DAYS[2]
    rejections = rejected(catalog, write(tmp_path / "events", [*DAYS[:2], bad, *DAYS[3:]]))
    assert [rejection.line for rejection in rejections] == [3]
    assert counts(catalog)["events"] == 11
    assert import_events(catalog, tmp_path / "events").rejected == 1


def test_a_line_of_invalid_utf8_does_not_stop_the_import(catalog: Catalog, tmp_path: Path) -> None:
    odd = DAYS[2].replace(b'"producer": "', b'"producer": "\xff')
    assert odd != DAYS[2]
    (rejection,) = rejected(catalog, write(tmp_path / "events", [*DAYS[:2], odd, *DAYS[3:]]))
    assert (rejection.line, "not JSON" in rejection.reason) == (3, True)
    assert counts(catalog)["events"] == 11


def test_a_line_that_is_too_long_is_skipped(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_files, "MAX_LINE", 3_000)
    rejections = rejected(catalog, write(tmp_path / "events", [DAYS[0], b"x" * 9_000, DAYS[1]]))
    assert [str(rejection) for rejection in rejections] == [
        "line 2: The line is longer than 3,000 bytes."
    ]
    assert counts(catalog)["events"] == 2


def test_crlf_lines_and_a_last_line_without_line_break_are_read(
    catalog: Catalog, tmp_path: Path
) -> None:
    file = tmp_path / "events"
    file.write_bytes(DAYS[0] + b"\r\n" + DAYS[1])
    assert rejected(catalog, file) == []
    assert counts(catalog)["events"] == 2


def test_a_truncated_file_is_imported_up_to_the_damage(catalog: Catalog, tmp_path: Path) -> None:
    noise = [b"%b" % random.Random(seed).randbytes(900).hex().encode() for seed in range(40)]
    whole = write(tmp_path / "events.gz", [*DAYS, *noise])
    content = whole.read_bytes()
    whole.write_bytes(content[: len(content) // 2])
    with pytest.raises(EventFileError, match="after line"):
        import_events(catalog, whole)
    assert counts(catalog)["events"] == 12


def test_an_empty_file_imports_nothing(catalog: Catalog, tmp_path: Path) -> None:
    report = import_events(catalog, write(tmp_path / "events", []))
    assert (report.lines, report.was_done) == (0, False)


def test_progress_goes_up_to_the_size_of_the_file(catalog: Catalog, file: Path) -> None:
    seen: list[int] = []
    import_events(catalog, file, watcher=Watcher(on_bytes=seen.append))
    assert seen[-1] == file.stat().st_size


DAY = [
    event("START", at(0), "fx", "load_fx"),
    event("COMPLETE", at(1), "fx", "load_fx", outputs=[written("market.fx", columns=["ccy"])]),
    event(
        "COMPLETE",
        at(60 * 30),
        "exposure",
        inputs=[read("market.fx")],
        outputs=[written("credit.exposure", from_columns={"amount": ("market.fx", "rate")})],
    ),
    event("FAIL", at(2), "broken", error="no feed"),
]


def record(catalog: Catalog, bodies: list[bytes]) -> None:
    recorder = Recorder(catalog.store)
    wrong = record_group(catalog, recorder, [read_claim(body) for body in bodies], clock.now())
    recorder.close()
    assert wrong == {}


def exported(catalog: Catalog, wanted: EventFilter | None = None) -> list[bytes]:
    out = BytesIO()
    report = export_events(catalog, wanted or EventFilter(), out)
    lines = out.getvalue().splitlines()
    assert report.events == len(lines)
    return lines


def test_bodies_are_exported_byte_for_byte_in_time_order(catalog: Catalog) -> None:
    record(catalog, DAY)
    assert exported(catalog) == [DAY[0], DAY[1], DAY[3], DAY[2]]


def test_a_small_uncompressed_body_is_exported_too(catalog: Catalog) -> None:
    small = b'{"eventTime":"2026-09-01T06:00:00Z","job":{"namespace":"a","name":"b"}}'
    record(catalog, [small])
    assert exported(catalog) == [small]


def test_only_matching_events_are_exported(catalog: Catalog) -> None:
    record(catalog, DAY)
    assert exported(catalog, EventFilter(process_key="AUTOSYS/load_fx")) == DAY[:2]
    assert exported(catalog, EventFilter(since=at(60))) == [DAY[2]]


def test_a_multi_line_body_is_joined_to_one_line(catalog: Catalog) -> None:
    pretty = json.dumps(json.loads(DAY[0]), indent=2).encode()
    record(catalog, [pretty])
    out = BytesIO()
    assert export_events(catalog, EventFilter(), out).joined == 1
    (line,) = out.getvalue().splitlines()
    assert json.loads(line) == json.loads(pretty)


def test_importing_an_export_gives_the_same_catalog(
    catalog: Catalog, sqlite_template: Path, tmp_path: Path
) -> None:
    record(catalog, DAY)
    file = tmp_path / "events.ndjson"
    with file.open("wb") as out:
        export_events(catalog, EventFilter(), out)
    copy = tmp_path / "copy.db"
    copy.write_bytes(sqlite_template.read_bytes())
    second = open_catalog(f"sqlite:///{copy}")
    import_events(second, file, historical=False)
    again = tmp_path / "again.ndjson"
    with again.open("wb") as out:
        export_events(second, EventFilter(), out)
    assert again.read_bytes() == file.read_bytes()
    if catalog.store.name == "sqlite":
        assert state_of(second) == state_of(catalog)
    second.close()


def test_a_large_export_uses_little_memory(catalog: Catalog) -> None:
    output = written("credit.exposure", columns=[f"column_{n}" for n in range(300)])
    template = event("COMPLETE", at(0), "run", outputs=[output])
    for group in range(10):
        names = (f"{group}.{index}" for index in range(100))
        record(
            catalog,
            [template.replace(run_id("run").encode(), run_id(name).encode()) for name in names],
        )
    file = Nowhere()
    tracemalloc.start()
    export_events(catalog, EventFilter(), file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert file.size > 15_000_000
    assert peak < 10_000_000


class Nowhere:
    """Counts the bytes written to it."""

    def __init__(self) -> None:
        self.size = 0

    def write(self, content: bytes) -> int:
        self.size += len(content)
        return len(content)
