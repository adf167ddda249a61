"""`floe events`: import, export and deliver, as a user types them."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from floe.catalog import ProcessNotFoundError
from floe.catalog.database import Catalog, open_catalog
from floe.catalog.migrate import upgrade_catalog
from floe.catalog.recording import record_group
from floe.cli.events import BadTimeError, UnwritableFileError, app
from floe.client import Client
from floe.events import event_files
from floe.spec.dates import DateRules
from tests.client.fake_api import FakeApi
from tests.events.factory import at, event, recently, written
from tests.events.state import state_of
from tests.events.test_recording import record

EVENTS = [
    event("START", at(0), "fx", "load_fx"),
    event("COMPLETE", at(1), "fx", "load_fx", outputs=[written("market.fx")]),
    event("FAIL", at(60 * 24), "exposure", error="no feed"),
]


@pytest.fixture(autouse=True)
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """An empty catalog, set by FLOE_CATALOG_URL."""
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    monkeypatch.setenv("FLOE_CATALOG_URL", url)
    monkeypatch.setenv("FLOE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    catalog = open_catalog(url)
    upgrade_catalog(catalog)
    yield catalog
    catalog.close()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "events.ndjson"
    path.write_bytes(b"\n".join(EVENTS) + b"\n")
    return str(path)


@pytest.fixture
def news(tmp_path: Path) -> str:
    path = tmp_path / "news.ndjson"
    bodies = [
        event("COMPLETE", recently(0), "fx", "load_fx", outputs=[written("market.fx")]),
        event("FAIL", recently(1), "exposure", error="no feed"),
    ]
    path.write_bytes(b"\n".join(bodies) + b"\n")
    return str(path)


def floe_events(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def count(catalog: Catalog, what: str) -> int:
    return len(state_of(catalog)[what])


def test_a_second_import_of_a_file_reports_that_it_is_done(catalog: Catalog, file: str) -> None:
    first, second = floe_events("import", file), floe_events("import", file)
    assert (first.exit_code, first.stdout) == (0, "events.ndjson: 3 lines imported.\n")
    assert (second.exit_code, second.stdout) == (
        0,
        "events.ndjson is already imported: 3 lines.\n",
    )
    assert count(catalog, "events") == 3
    assert count(catalog, "changes") == 0


def test_a_live_import_fires_triggers(catalog: Catalog, news: str) -> None:
    floe_events("import", news, "--live")
    assert count(catalog, "changes") == 2


def test_events_older_than_the_retention_trigger_nothing(
    catalog: Catalog, news: str, tmp_path: Path
) -> None:
    (tmp_path / "floe.yaml").write_text("name: night\n")
    (tmp_path / "platform.yaml").write_text("catalog:\n  default:\n    retention: {events: 1h}\n")
    floe_events("import", news, "--live")
    assert count(catalog, "versions") == 1
    assert count(catalog, "changes") == 0


def test_rejected_lines_are_printed_and_saved_and_exit_1(tmp_path: Path) -> None:
    path = tmp_path / "bad.ndjson.gz"
    path.write_bytes(gzip.compress(EVENTS[0] + b"\nnonsense\n" + EVENTS[1]))
    result = floe_events("import", str(path), "--rejects", "rejects.txt", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "lines": 3,
        "lines_now": 3,
        "rejected": 1,
        "resumed_at": 0,
        "was_done": False,
    }
    assert "line 2: The body is not JSON" in result.stderr
    assert (tmp_path / "rejects.txt").read_text().startswith("line 2: The body is not JSON")


def test_many_rejected_lines_do_not_flood_the_screen(tmp_path: Path) -> None:
    path = tmp_path / "bad.ndjson"
    path.write_bytes(b"nonsense\n" * 30)
    result = floe_events("import", str(path), "--rejects", "rejects.txt")
    assert "line 20:" in result.stderr
    assert "line 21:" not in result.stderr
    assert "… and 10 more rejected lines." in result.stderr
    assert len((tmp_path / "rejects.txt").read_text().splitlines()) == 30


def test_an_interrupted_import_prints_how_to_continue(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(event_files, "record_group", interrupt)
        result = floe_events("import", file)
    assert result.exit_code == 130
    assert "Interrupted. Run the same command again to continue." in result.stderr
    assert floe_events("import", file).exit_code == 0


def test_a_continued_import_prints_where_it_continued(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, calls = record_group, iter(range(9))

    def interrupt_later(*given: object) -> object:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return record(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(event_files, "EVENTS_IN_GROUP", 1)
    monkeypatch.setattr(event_files, "record_group", interrupt_later)
    assert floe_events("import", file).exit_code == 130
    assert floe_events("import", file).stdout == (
        "events.ndjson: 2 lines imported, continued after line 1.\n"
    )


def test_a_damaged_file_exits_with_2(tmp_path: Path) -> None:
    path = tmp_path / "cut.ndjson.gz"
    path.write_bytes(gzip.compress(b"\n".join(EVENTS * 20))[:100])
    result = floe_events("import", str(path))
    assert result.exit_code == 2
    assert ": damaged after line 0" in result.stderr
    assert floe_events("import", "missing").exit_code == 2


def test_an_export_writes_the_imported_events(file: str, tmp_path: Path) -> None:
    floe_events("import", file)
    result = floe_events("export")
    assert result.stdout_bytes == Path(file).read_bytes()
    assert result.stderr == "3 events exported.\n"
    floe_events("export", "-o", "out.ndjson.gz")
    packed = (tmp_path / "out.ndjson.gz").read_bytes()
    assert gzip.decompress(packed) == Path(file).read_bytes()
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("nowhere/out.ndjson", "No such file or directory"),
        ("nowhere/out.ndjson.gz", "No such file or directory"),
        ("events.ndjson/out.ndjson", "Not a directory"),
        ("folder", "Is a directory"),
    ],
)
def test_an_unwritable_export_file_is_an_error(
    file: str, tmp_path: Path, place: str, reason: str
) -> None:
    (tmp_path / "folder").mkdir()
    error = floe_events("export", "-o", place).exception
    assert isinstance(error, UnwritableFileError)
    assert str(error).startswith(f"Cannot write {place}: {reason}.")
    assert error.exit_code == 1
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("place", "reason"),
    [("nowhere/rejects.txt", "No such file or directory"), ("folder", "Is a directory")],
)
def test_an_unwritable_rejects_file_stops_an_import_before_it_starts(
    catalog: Catalog, file: str, tmp_path: Path, place: str, reason: str
) -> None:
    (tmp_path / "folder").mkdir()
    result = floe_events("import", file, "--rejects", place)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Cannot write {place}: {reason}.")
    assert count(catalog, "events") == 0


def test_an_export_can_be_filtered(file: str) -> None:
    floe_events("import", file)
    assert floe_events("export", "--since", "2026-09-02").stdout_bytes == EVENTS[2] + b"\n"
    assert (
        floe_events("export", "--until", "2026-09-01T12:01:00Z").stdout_bytes == EVENTS[0] + b"\n"
    )
    assert len(floe_events("export", "--process", "AUTOSYS/load_fx").stdout.splitlines()) == 2
    assert isinstance(floe_events("export", "--since", "soon").exception, BadTimeError)
    assert isinstance(floe_events("export", "--process", "NOPE").exception, ProcessNotFoundError)


def test_queued_reports_are_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeApi() as api:
        monkeypatch.setenv("FLOE_API_URL", api.url)
        api.gate = lambda: (503, {"detail": "the catalog is away"})
        for number in range(2):
            Client(warn=print).register_dataset(f"night.t{number}")
        down = floe_events("deliver")
        assert down.exit_code == 75
        assert "0 delivered, 0 refused, 2 waiting" in down.stdout
        assert "the catalog is away" in down.stderr
        api.gate = lambda: None
        up = floe_events("deliver", "--json")
    assert up.exit_code == 0
    assert json.loads(up.stdout)["delivered"] == 2


def test_reports_queued_for_another_api_are_listed_with_the_command_to_deliver_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Client("http://127.0.0.1:1", warn=print).register_dataset("night.t")
    with FakeApi() as api:
        monkeypatch.setenv("FLOE_API_URL", api.url)
        as_text, as_json = floe_events("deliver"), floe_events("deliver", "--json")
    assert as_text.exit_code == 0
    assert (
        "1 report is queued for http://127.0.0.1:1. Deliver with: FLOE_API_URL=" in as_text.stderr
    )
    assert json.loads(as_json.stdout)["for_others"] == [
        {"recipient": "http://127.0.0.1:1", "waiting": 1}
    ]
    assert api.taken == []


def test_a_dry_run_of_fold_changes_nothing(tmp_path: Path, catalog: Catalog) -> None:
    """Names recorded without date rules are folded by the default rules."""
    bodies = [
        event("COMPLETE", at(n), f"run {n}", outputs=[written(f"/in/fx_2026090{n}.csv")])
        for n in (1, 2, 3)
    ]
    record(catalog, bodies, [3], DateRules([]))
    before = state_of(catalog)
    shown = floe_events("fold", "--dry-run", "--json")
    assert json.loads(shown.output)[0]["dataset"] == "lake//in/fx_{date}.csv"
    assert "3" in floe_events("fold", "--dry-run").output
    assert state_of(catalog) == before
    done = json.loads(floe_events("fold", "--json").output)
    assert done == json.loads(shown.output)
    assert done[0]["dates"] == ["2026-09-01", "2026-09-02", "2026-09-03"]
    assert "Nothing to fold." in floe_events("fold").output


def test_an_import_uses_the_projects_date_rules(tmp_path: Path, catalog: Catalog) -> None:
    (tmp_path / "floe.yaml").write_text("name: credit\n")
    (tmp_path / "platform.yaml").write_text("events:\n  date_patterns: []\n")
    file = tmp_path / "dated.ndjson"
    file.write_bytes(event("COMPLETE", at(0), outputs=[written("/in/fx_20260901.csv")]))
    assert floe_events("import", str(file)).exit_code == 0
    assert [row[0] for row in state_of(catalog)["datasets"]] == ["lake//in/fx_20260901.csv"]
