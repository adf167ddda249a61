"""The demo's data matches its declaration, is always the same, and gives realistic results."""

import csv
import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from demo.credit_risk import make_data
from floe.settings import ProjectPaths
from floe.spec import DatasetSpec, get_calendar, load_project, read_sql, validate_project

DEMO = ProjectPaths(Path(__file__).parents[2] / "demo" / "credit_risk")
SPEC = load_project(DEMO, {}).spec
RATES_OF_DEFAULT = import_module("demo.credit_risk.risk.default_rates")
FEEDS = {
    "fx": "market.fx_rates",
    "positions": "credit.positions",
    "collateral": "credit.collateral",
}
NIGHT = date(2026, 9, 1)
Row = dict[str, Any]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder that the script creates."""
    folder = tmp_path_factory.mktemp("demo") / "data"
    make_data.main(["--folder", str(folder)])
    return folder


@pytest.fixture(scope="module")
def night(data: Path) -> Iterator[sqlite3.Connection]:
    """A database in which the demo's processes have run for two days, the second one NIGHT."""
    database = sqlite3.connect(":memory:")
    database.create_function("greatest", 2, max)
    run_night(database, data, date(2026, 8, 31))
    yesterday = select(database, "credit.exposure")
    run_night(database, data, NIGHT)
    fill(database, "yesterday", yesterday)
    run_process(database, "credit.limit_usage_daily")
    run_process(database, "reporting.large_exposures_daily")
    yield database
    database.close()


def run_night(database: sqlite3.Connection, data: Path, day: date) -> None:
    """Load the feeds, then run the processes that compute exposure and loss."""
    for feed, dataset in FEEDS.items():
        fill(database, dataset, good_rows(data, feed, day))
    parties = counterparties(data)
    fill(database, "ref.counterparties", parties)
    floor = SPEC.processes["credit.default_rates_daily"].params["floor"]
    curve: dict[str, float] = RATES_OF_DEFAULT.smooth(RATES_OF_DEFAULT.OBSERVED, floor)
    rates = [{"rating": rating, "probability": rate} for rating, rate in curve.items()]
    fill(database, "credit.default_rates", rates)
    for process in ("positions_in_eur", "exposure_daily", "expected_loss_daily"):
        run_process(database, f"credit.{process}")


def run_process(database: sqlite3.Connection, name: str) -> None:
    """Run a process's SQL, with inputs under their aliases and the result under its dataset."""
    process = SPEC.processes[name]
    for alias, input_ in process.inputs.items():
        if alias != "yesterday":
            fill(database, alias, select(database, input_.dataset))
    steps = [(step.name, step.sql) for step in process.steps] or [("result", process.sql)]
    rows: list[Row] = []
    for step, sql in steps:
        assert sql is not None
        rows = query(database, read_sql(DEMO.root, sql), process.params)
        fill(database, step, rows)
    (output,) = process.outputs.values()
    fill(database, output.dataset, rows)


def query(database: sqlite3.Connection, sql: str, params: Row | None = None) -> list[Row]:
    cursor = database.execute(sql, params or {})
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def select(database: sqlite3.Connection, table: str) -> list[Row]:
    return query(database, f'select * from "{table}"')


def fill(database: sqlite3.Connection, table: str, rows: list[Row]) -> None:
    columns = ", ".join(f'"{name}"' for name in rows[0])
    marks = ", ".join("?" * len(rows[0]))
    database.execute(f'drop table if exists "{table}"')
    database.execute(f'create table "{table}" ({columns})')
    values = [[sqlite_value(value) for value in row.values()] for row in rows]
    database.executemany(f'insert into "{table}" values ({marks})', values)


def sqlite_value(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, date) else value


def counterparties(data: Path) -> list[Row]:
    database = sqlite3.connect(data / "risk.db")
    rows = query(database, read_sql(DEMO.root, "sql/extract_counterparties.sql"))
    database.close()
    return rows


def feed_file(data: Path, feed: str, day: date) -> Path:
    (path,) = (data / "landing" / feed / str(day)).glob("*.csv")
    return path


def data_lines(data: Path, feed: str, day: date) -> list[str]:
    """The lines between header and trailer; the header must have the declared columns."""
    delimiter = ";" if feed == "collateral" else ","
    header, *lines = feed_file(data, feed, day).read_text().splitlines()
    assert tuple(header.split(delimiter)) == SPEC.datasets[FEEDS[feed]].column_names
    return [line for line in lines if not line.startswith("TRL")]


def good_rows(data: Path, feed: str, day: date) -> list[Row]:
    """The lines of a delivery that fit the declared types."""
    spec = SPEC.datasets[FEEDS[feed]]
    rows = (parsed(spec, line) for line in data_lines(data, feed, day))
    return [row for row in rows if row is not None]


def parsed(spec: DatasetSpec, line: str) -> Row | None:
    delimiter = str(spec.options.get("delimiter", ","))
    date_format = "%d.%m.%Y" if "date_format" in spec.options else "%Y-%m-%d"
    (values,) = csv.reader([line], delimiter=delimiter)
    try:
        return {
            column.name: typed(value, str(column.type), date_format)
            for column, value in zip(spec.columns, values, strict=True)
        }
    except (ValueError, InvalidOperation):
        return None


def typed(text: str, type_: str, date_format: str) -> object:
    if type_ == "date":
        return datetime.strptime(text, date_format).date()  # noqa: DTZ007, a date has no zone
    if type_ == "bigint":
        return int(text)
    return decimal(text, type_) if type_.startswith("decimal") else text


def decimal(text: str, type_: str) -> Decimal:
    """Parse a decimal; raise ValueError if the type cannot hold it without loss."""
    precision, scale = map(int, type_.removeprefix("decimal(").removesuffix(")").split(","))
    value = Decimal(text)
    if value != round(value, scale) or abs(value) >= 10 ** (precision - scale):
        raise ValueError(text)
    return value


def test_the_days_are_six_consecutive_business_days() -> None:
    assert SPEC.calendar is not None
    calendar = get_calendar(SPEC.calendar)
    expected = [date(2026, 8, 26)]
    while len(expected) < 6:
        expected.append(calendar.next_business_day(expected[-1]))
    assert expected == make_data.DAYS
    assert make_data.DAYS[-1] == date(2026, 9, 2)


@pytest.mark.parametrize("day", make_data.DAYS, ids=str)
@pytest.mark.parametrize("feed", ["fx", "positions"])
def test_the_manifest_matches_its_file(data: Path, feed: str, day: date) -> None:
    path = feed_file(data, feed, day)
    rows = len(data_lines(data, feed, day))
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    assert json.loads((path.parent / "manifest.json").read_text()) == {
        "files": [{"name": path.name, "rows": rows, "sha256": checksum}],
        "rows": rows,
    }


@pytest.mark.parametrize("day", make_data.DAYS, ids=str)
def test_the_trailer_of_collateral_counts_the_lines_before_it(data: Path, day: date) -> None:
    trailer = feed_file(data, "collateral", day).read_text().splitlines()[-1]
    assert trailer == f"TRL;{len(data_lines(data, 'collateral', day))}"


@pytest.mark.parametrize("day", make_data.DAYS, ids=str)
@pytest.mark.parametrize("feed", FEEDS)
def test_values_have_their_declared_types_except_a_few_lines_of_one_day(
    data: Path, feed: str, day: date
) -> None:
    rows = good_rows(data, feed, day)
    bad = len(data_lines(data, feed, day)) - len(rows)
    few = feed == "collateral" and day == make_data.BAD_LINES_DAY
    assert bad == (3 if few else 0)
    assert bad < int(str(SPEC.datasets["credit.collateral"].options["max_bad_records"]))
    assert {row["as_of"] for row in rows} == {day}


@pytest.mark.parametrize("day", make_data.DAYS, ids=str)
def test_feeds_pass_the_declared_checks(data: Path, day: date) -> None:
    rates, positions, collateral = (good_rows(data, feed, day) for feed in FEEDS)
    known = {party["counterparty_id"] for party in counterparties(data)}
    currencies = {rate["currency"] for rate in rates}
    assert len(currencies) == len(rates) == 8
    assert min(rate["rate"] for rate in rates) > 0
    assert 480 < len({position["position_id"] for position in positions}) == len(positions) < 520
    assert {position["product"] for position in positions} == {"loan", "bond", "swap", "forward"}
    assert {row["counterparty_id"] for row in positions + collateral} <= known
    assert {row["currency"] for row in positions + collateral} <= currencies
    assert all(0 <= row["haircut"] <= 1 for row in collateral)
    assert all(position["maturity"] > day for position in positions)


def test_every_counterparty_has_a_rating_with_a_default_rate(data: Path) -> None:
    parties = counterparties(data)
    assert len(parties) == 39
    assert {party["rating"] for party in parties} == set(RATES_OF_DEFAULT.OBSERVED)


def test_some_exposures_are_large_and_most_are_not(night: sqlite3.Connection) -> None:
    usage = select(night, "credit.limit_usage")
    large = select(night, "reporting.large_exposures")
    assert 3 <= len(large) <= len(usage) / 3
    assert {row["status"] for row in usage} == {"ok", "warning", "breach", "no_limit"}
    assert all(row["expected_loss"] > 0 for row in large)


def test_every_counterparty_has_an_exposure_and_a_loss_below_it(night: sqlite3.Connection) -> None:
    losses = select(night, "credit.expected_loss")
    assert len(losses) == len(select(night, "credit.exposure")) == 39
    assert all(0 <= row["expected_loss"] <= row["exposure"] for row in losses)
    assert 1_000_000 < sum(row["expected_loss"] for row in losses) < 100_000_000


def test_exposures_change_little_from_one_day_to_the_next(night: sqlite3.Connection) -> None:
    usage = select(night, "credit.limit_usage")
    exposure, change = (sum(row[name] for row in usage) for name in ("exposure", "change"))
    assert 0 < abs(change) < exposure / 10


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in files
    }


def test_a_second_run_writes_no_file(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(data)
    make_data.main(["--folder", str(data)])
    assert contents(data) == before
    assert capsys.readouterr().out == f"{len(before)} files, 0 of them written.\n"


def test_another_process_creates_the_same_bytes(data: Path, tmp_path: Path) -> None:
    script = DEMO.root / "make_data.py"
    subprocess.run([sys.executable, script, "--folder", tmp_path], check=True, capture_output=True)
    assert {name: content for name, (content, _) in contents(tmp_path).items()} == {
        name: content for name, (content, _) in contents(data).items()
    }


@pytest.mark.parametrize("feed", FEEDS)
def test_corrupting_changes_one_delivery_and_the_next_run_restores_it(
    data: Path, tmp_path: Path, feed: str
) -> None:
    copy = shutil.copytree(data, tmp_path / "data")
    right = contents(copy)
    make_data.main(["--folder", str(copy), "--corrupt", f"{feed}:{NIGHT}"])
    wrong = contents(copy)
    changed = [name for name in right if right[name][0] != wrong[name][0]]
    assert changed == [f"landing/{feed}/{NIGHT}/{feed}.csv"]
    assert len(right[changed[0]][0]) == len(wrong[changed[0]][0])
    make_data.main(["--folder", str(copy)])
    assert contents(copy)[changed[0]][0] == right[changed[0]][0]


def test_corrupting_an_unknown_delivery_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        make_data.main(["--folder", str(tmp_path), "--corrupt", "fx:2026-08-30"])
    assert "fx:2026-08-31" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_project_is_valid_with_its_data_beside_it(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns(".floe", "data", "__pycache__")
    project = shutil.copytree(DEMO.root, tmp_path / "credit_risk", ignore=ignored)
    make_data.main(["--folder", str(project / "data")])
    assert not validate_project(ProjectPaths(project), {}).findings


def test_data_and_catalog_of_a_demo_are_not_committed() -> None:
    ignored = (DEMO.root.parents[1] / ".gitignore").read_text().splitlines()
    assert {"demo/*/data/", ".floe/"} <= set(ignored)
