"""Deliveries broken in every way: each has a reason, and everything else runs."""

import gzip
import io
import os
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from floe.execution.batch import BatchOptions, BatchReport, run_batch
from tests.execution.workshop import TUESDAY, OpenShop, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]
SCHEMA = [
    {"name": "id", "type": "bigint", "width": 4},
    {"name": "amount", "type": "decimal(18,4)", "width": 8},
]
CSV = b"id,amount\n1,1.5\n2,2.5\n"
FIXED = b"   1     1.5\n   2     2.5\n"
JSON, TRAILER = {"kind": "json"}, {"kind": "trailer"}
CONTROL = {"kind": "control", "path": "landing/{dataset}/{business_date}/rows.ctl"}
# The innards of what reads a file are of no use to an operator.
INNARDS = ("Traceback", "org.apache", "java.", "SQLSTATE", "Exception:", "\n", "[FAILED")

Make = Callable[[Path], object]


def parquet(**columns: Any) -> bytes:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow.parquet import write_table  # type: ignore[import-untyped]

    buffer = io.BytesIO()
    write_table(pa.table(columns), buffer)
    return buffer.getvalue()


GOOD_PARQUET = parquet(id=[1], amount=[Decimal("1.5000")])
GARBLED = GOOD_PARQUET[:8] + b"\xff" * 40 + GOOD_PARQUET[48:]


def files(**content: bytes) -> Make:
    """Write files to the folder; two underscores in a name stand for a dot."""

    def make(folder: Path) -> None:
        for name, data in content.items():
            (folder / name.replace("__", ".")).write_bytes(data)

    return make


def link(name: str, target: str) -> Make:
    def make(folder: Path) -> None:
        (folder / "good.csv").write_bytes(CSV)
        (folder / name).symlink_to(target)

    return make


def outside(folder: Path) -> None:
    secret = folder.parents[3].parent / f"{folder.parents[3].name}-secret.csv"
    secret.write_bytes(CSV)
    (folder / "a.csv").symlink_to(secret)


def named(name: bytes) -> Make:
    def make(folder: Path) -> None:
        path = os.fsencode(folder) + b"/" + name
        with open(path, "wb") as file:  # noqa: PTH123 - a name that is not text
            file.write(CSV)

    return make


def folders(folder: Path) -> None:
    (folder / "a.csv").mkdir()
    (folder / "a.csv" / "b.csv").mkdir()


def manifest_folder(folder: Path) -> None:
    (folder / "a.csv").write_bytes(CSV)
    (folder / "manifest.json").mkdir()


def with_manifest(content: bytes) -> Make:
    return files(a__csv=CSV, manifest__json=content)


BAD: dict[str, tuple[str, dict[str, Any], Make, str, str]] = {
    # name: format, more of the dataset, what is delivered, state, part of the reason
    "empty_csv": ("csv", {}, files(a__csv=b""), "REJECTED", "a.csv is empty"),
    "binary_csv": ("csv", {}, files(a__csv=os.urandom(2000)), "REJECTED", "a.csv"),
    "nul_csv": ("csv", {}, files(a__csv=b"\0" * 500), "REJECTED", "a.csv"),
    "wrong_header": ("csv", {}, files(a__csv=b"a,b\n1,2\n"), "REJECTED", "missing: id, amount"),
    "cut_gzip": (
        "csv",
        {},
        files(a__csv__gz=gzip.compress(CSV * 99)[:-15]),
        "REJECTED",
        "a.csv.gz",
    ),
    "no_gzip": ("csv", {}, files(a__csv__gz=CSV), "REJECTED", "a.csv.gz"),
    "empty_gzip": ("csv", {}, files(a__csv__gz=b""), "REJECTED", "a.csv.gz"),
    "cut_bzip2": ("csv", {}, files(a__csv__bz2=b"BZh91AY&SY\0\0"), "REJECTED", "a.csv.bz2"),
    "wrong_encoding": (
        "csv",
        {"options": {"encoding": "utf-16"}},
        files(a__csv=CSV[:-1]),
        "REJECTED",
        "a.csv is not utf-16",
    ),
    "unknown_encoding": (
        "csv",
        {"options": {"encoding": "cp9999"}},
        files(a__csv=CSV),
        "",
        "cp9999",
    ),
    "empty_parquet": ("parquet", {}, files(a__parquet=b""), "REJECTED", "a.parquet is empty"),
    "empty_second": (
        "parquet",
        {},
        files(a__parquet=GOOD_PARQUET, b__parquet=b""),
        "REJECTED",
        "b.parquet is empty",
    ),
    "cut_parquet": (
        "parquet",
        {},
        files(a__parquet=GOOD_PARQUET[:-9]),
        "REJECTED",
        "not a Parquet",
    ),
    "text_parquet": ("parquet", {}, files(a__parquet=CSV), "REJECTED", "not a Parquet file"),
    "garbled_parquet": ("parquet", {}, files(a__parquet=GARBLED), "REJECTED", "a.parquet"),
    "other_columns": (
        "parquet",
        {},
        files(a__parquet=GOOD_PARQUET, b__parquet=parquet(id=[2])),
        "REJECTED",
        "the columns of b.parquet differ: missing: amount",
    ),
    "text_values": (
        "parquet",
        {},
        files(a__parquet=parquet(id=[1], amount=["abc"])),
        "REJECTED",
        "'abc'",
    ),
    "short_lines": ("fixed_width", {}, files(a__txt=b"1\n2\n"), "REJECTED", "a.txt"),
    "binary_fixed": ("fixed_width", {}, files(a__txt=os.urandom(2000)), "REJECTED", "a.txt"),
    "dangling": ("csv", {}, link("b.csv", "nowhere.csv"), "MISSING", "nowhere.csv"),
    "loop": ("csv", {}, link("b.csv", "b.csv"), "REJECTED", "form a loop"),
    "outside": ("csv", {}, outside, "REJECTED", "a.csv points outside the storage root"),
    "system_file": (
        "csv",
        {},
        link("b.csv", "/etc/passwd"),
        "REJECTED",
        "outside the storage root",
    ),
    "device": ("csv", {}, link("b.csv", "/dev/zero"), "REJECTED", "outside the storage root"),
    "system_folder": ("csv", {}, link("b.csv", "/etc"), "REJECTED", "outside the storage root"),
    "own_catalog": ("csv", {}, link("b.csv", "../../../.floe"), "REJECTED", "floe's state folder"),
    "pipe": ("csv", {}, lambda folder: os.mkfifo(folder / "a.csv"), "REJECTED", "a named pipe"),
    "folders": ("csv", {}, folders, "MISSING", "nothing was delivered"),
    "newline_name": ("csv", {}, named(b"a\nb.csv"), "REJECTED", "'a\\nb.csv' contains a control"),
    "latin_name": ("csv", {}, named(b"Z\xfcrich.csv"), "REJECTED", "'Z\\xfcrich.csv' is not valid"),
    "deep_manifest": ("csv", {"manifest": JSON}, with_manifest(b"[" * 100_000), "REJECTED", "deep"),
    "list_manifest": (
        "csv",
        {"manifest": JSON},
        with_manifest(b"[7]"),
        "REJECTED",
        "manifest.json",
    ),
    "text_manifest": (
        "csv",
        {"manifest": JSON},
        with_manifest(b'"x"'),
        "REJECTED",
        "neither an obj",
    ),
    "nan_manifest": ("csv", {"manifest": JSON}, with_manifest(b'{"rows": NaN}'), "REJECTED", "NaN"),
    "inf_manifest": (
        "csv",
        {"manifest": JSON},
        with_manifest(b'{"rows": 1e999}'),
        "REJECTED",
        "inf",
    ),
    "huge_manifest": (
        "csv",
        {"manifest": JSON},
        with_manifest(b'{"rows": ' + b"9" * 5000 + b"}"),
        "REJECTED",
        "invalid number of rows",
    ),
    "latin_manifest": (
        "csv",
        {"manifest": JSON},
        with_manifest(b'{"\xfc": 1}'),
        "REJECTED",
        "UTF-8",
    ),
    "surrogate_manifest": (
        "csv",
        {"manifest": JSON},
        with_manifest(rb'{"rows": 2, "files": ["\ud800.csv"]}'),
        "REJECTED",
        r"\ud800.csv",
    ),
    "folder_manifest": ("csv", {"manifest": JSON}, manifest_folder, "REJECTED", "json is a folder"),
    "no_manifest": (
        "csv",
        {"manifest": JSON},
        files(a__csv=CSV),
        "MISSING",
        "manifest.json is mis",
    ),
    "no_trailer": ("csv", {"manifest": TRAILER}, files(a__csv=CSV), "MISSING", "does not end with"),
    "odd_trailer": (
        "csv",
        {"manifest": {**TRAILER, "prefix": "T"}},
        files(a__csv=CSV + "T,²\n".encode()),
        "REJECTED",
        "the row count must be a whole number; got '²'",
    ),
    "odd_control": (
        "csv",
        {"manifest": CONTROL},
        files(a__csv=CSV, rows__ctl="rows=²\n".encode()),
        "REJECTED",
        "invalid number of rows",
    ),
    "binary_control": (
        "csv",
        {"manifest": CONTROL},
        files(a__csv=CSV, rows__ctl=b"\xff\xfe"),
        "REJECTED",
        "rows.ctl cannot be read",
    ),
    "no_table": (
        "jdbc",
        {"options": {"connection": "ref", "table": "absent"}},
        lambda folder: None,
        "MISSING",
        "the database 'ref' says: no such table: absent",
    ),
    "no_file": (
        "jdbc",
        {"options": {"connection": "gone", "table": "absent"}},
        lambda folder: None,
        "MISSING",
        "the SQLite file gone.db of the connection 'gone' does not exist",
    ),
    "no_server": (
        "jdbc",
        {"options": {"connection": "down", "table": "absent"}},
        lambda folder: None,
        "MISSING",
        "refused",
    ),
    "no_driver": (
        "jdbc",
        {"options": {"connection": "odd", "table": "absent"}},
        lambda folder: None,
        "MISSING",
        "the database 'odd' says",
    ),
    "text_in_table": (
        "jdbc",
        {"options": {"connection": "ref", "table": "texts"}},
        lambda folder: None,
        "REJECTED",
        "'abc'",
    ),
}
GOOD: dict[str, tuple[str, dict[str, Any], Make]] = {"good": ("csv", {}, files(a__csv=CSV))}


def declare(shop: Workshop) -> None:
    datasets: dict[str, Any] = {}
    processes: dict[str, Any] = {}
    every = {**{name: case[:3] for name, case in BAD.items()}, **GOOD}
    for name, (form, more, make) in every.items():
        raw, out = f"raw.{name}", f"out.{name}"
        control = "manifest" in more and more["manifest"]["kind"] == "control"
        pattern = "*.csv" if control else "*"
        location = (
            {} if form == "jdbc" else {"location": f"landing/{raw}/{{business_date}}/{pattern}"}
        )
        datasets[raw] = {"format": form, "schema": SCHEMA, **location, **more}
        datasets[out] = {"schema": [{"name": "rows", "type": "bigint"}]}
        processes[name] = {
            "inputs": {"raw": raw}, "outputs": {"out": out},
            "sql": "select count(*) as rows from raw",
        }  # fmt: skip
        folder = shop.root / "landing" / raw / str(TUESDAY)
        folder.mkdir(parents=True)
        make(folder)
    shop.declare(datasets, processes)
    platform = yaml.safe_load((shop.root / "platform.yaml").read_text())
    platform["connections"] = {
        "ref": {"url": "sqlite:///ref.db"},
        "gone": {"url": "sqlite:///gone.db"},
        "down": {"url": "postgresql+psycopg://127.0.0.1:1/risk"},
        "odd": {"jdbc_url": "jdbc:odd:risk", "driver": "odd.Driver"},
    }
    shop.write(yaml.safe_dump(platform), "platform.yaml")
    with sqlite3.connect(shop.root / "ref.db") as database:
        database.execute("CREATE TABLE texts (id, amount)")
        database.execute("INSERT INTO texts VALUES (1, 'abc')")


def run(project: OpenShop) -> BatchReport:
    return run_batch(project.workspace, project.sparks, BatchOptions(TUESDAY))


def test_each_bad_delivery_has_a_reason_and_everything_else_runs(shop: Workshop) -> None:
    declare(shop)
    with shop.open() as project:
        report = run(project)
        arrivals = {arrival.dataset: arrival for arrival in report.arrivals}
        outcomes = {outcome.process: outcome for outcome in report.outcomes}
        assert (arrivals["raw.good"].state, outcomes["good"].state) == ("READY", "DONE")
        wrong = []
        for name, (_, _, _, state, reason) in BAD.items():
            arrival, outcome = arrivals[f"raw.{name}"], outcomes[name]
            shown = arrival.reason.rstrip(".")
            fine = (
                (arrival.state == state if state else arrival.state in ("REJECTED", "MISSING"))
                and reason in shown
                and not any(word in shown for word in INNARDS)
            )
            waits = outcome.state == ("SKIPPED" if arrival.state == "REJECTED" else "WAITING")
            named = shown in outcome.reason or shown.startswith("nothing was delivered")
            if not (fine and waits and named):
                wrong.append(f"{name} {arrival.state}: {arrival.reason} | {outcome}")
        assert not wrong, "\n".join(wrong)
        # What was rejected is on record once; looking again changes nothing.
        again = {arrival.dataset: arrival for arrival in run(project).arrivals}
        for name, arrival in arrivals.items():
            assert (again[name].state, again[name].reason) == (arrival.state, arrival.reason)
            states = project.states(name)
            assert len(states) == (0 if arrival.state == "MISSING" else 1), (name, states)
    done = shop.floe("run", "--all", "--date", str(TUESDAY), check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr + done.stdout
    assert "raw.good 2026-09-01.1 READY" in done.stderr
