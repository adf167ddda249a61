"""Runs of processes, compared with the same SQL in a bare Spark session on one warm server.

floe opens a session, plans, leases, writes a version on a branch, checks it, publishes it and
records lineage. The bare side overwrites a table of the same catalog and scans it once, which is
what somebody without floe would do for the same checks. Both take turns, process by
process, so that other load affects both alike.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from benchmarks.result import Result
from benchmarks.tpch import COLUMNS, QUERIES, checks_on, scan_sql, table_sql
from floe.catalog.version_queries import latest_ready
from floe.execution.batch import DONE, BatchOptions, run_batch
from floe.execution.formats.contract import StoredVersion
from floe.execution.planning import RunOptions
from floe.execution.runner import run_process
from floe.execution.spark.server import ensure_server, stop_server
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.audits import audit_version
from floe.execution.versions.version_access import format_of, stored_version
from floe.execution.workspace import Workspace, load_site, open_workspace
from floe.settings import ProjectPaths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

DAY = date(2026, 9, 1)
# Warm-up rounds, and measured rounds.
ROUNDS = {"small": (4, 7), "large": (1, 3)}
SCALES = {"small": 0.1, "large": 1.0}
ALLOWED_SECONDS = 0.35
ALLOWED_SHARE = 1.10
ALLOWED_CHECKS = 2.0
SMALL_PROCESSES = 50
CHECK_ROUNDS = 7
# One that reads a single column, and one that reads all the columns of the other nine.
ONE_CHECK = [{"kind": "range", "column": "l_quantity", "min": 0}]
SAME_COLUMNS = [
    {
        "kind": "not_null",
        "columns": ["l_quantity", "l_orderkey", "l_linenumber", "l_shipdate", "l_extendedprice",
                    "l_discount", "l_returnflag", "l_linestatus"],
    },
]  # fmt: skip
NINE_MORE = [
    {"kind": "row_count", "min": 1},
    {"kind": "not_null", "columns": ["l_orderkey", "l_linenumber"]},
    {"kind": "not_null", "columns": ["l_shipdate"]},
    {"kind": "range", "column": "l_extendedprice", "min": 0, "max": 100_000},
    {"kind": "range", "column": "l_discount", "min": 0, "max": 1},
    {"kind": "range", "column": "l_shipdate", "min": "1992-01-01", "max": "1999-12-31"},
    {"kind": "accepted_values", "column": "l_returnflag", "values": ["R", "A", "N"]},
    {"kind": "accepted_values", "column": "l_linestatus", "values": ["O", "F"]},
    {"kind": "range", "column": "l_linenumber", "min": 0, "max": 3},
]


@dataclass(frozen=True)
class Pair:
    """Seconds of one process: with floe, and bare."""

    floe: float
    bare: float

    @property
    def more(self) -> float:
        return self.floe - self.bare


class Bench:
    """A project with its own server, and a bare session on the same server."""

    def __init__(self, workspace: Workspace, spark: "SparkSession") -> None:
        self.workspace, self.spark = workspace, spark
        self.sparks = SparkSessions(workspace.site)

    def run(self, process: str) -> float:
        """Run a process as floe does; return its seconds."""
        return _seconds(lambda: run_process(self.workspace, self.sparks, RunOptions(process, DAY)))

    def generate(self, size: str) -> None:
        """Create the tables, each by a process."""
        for table in COLUMNS:
            self.run(f"make_{size}_{table}")

    def prepare_bare(self, size: str) -> None:
        """Give the bare session views with short names, and its own tables to write."""
        for table in COLUMNS:
            view = f"CREATE OR REPLACE TEMP VIEW {table} AS SELECT * FROM lake.{size}.{table}"
            self.spark.sql(view).collect()
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.bare_{size}").collect()
        for name, _, _, _, sql in QUERIES:
            table = f"lake.bare_{size}.{name}"
            self.spark.sql(f"CREATE TABLE {table} USING iceberg AS {sql} LIMIT 0").collect()

    def bare(self, size: str, name: str, key: str, measure: str, sql: str) -> float:
        """Write a table and scan it once; return the seconds."""
        from pyspark.sql import functions as F  # noqa: N812

        table = f"lake.bare_{size}.{name}"

        def work() -> None:
            self.spark.sql(sql).writeTo(table).overwrite(F.lit(True))
            self.spark.sql(scan_sql(table, key, measure)).collect()

        return _seconds(work)

    def round(self, size: str, *, floe_first: bool) -> dict[str, Pair]:
        """Run every process once on each side."""
        pairs = {}
        for name, _, key, measure, sql in QUERIES:
            if floe_first:
                floe = self.run(f"{size}_{name}")
                bare = self.bare(size, name, key, measure, sql)
            else:
                bare = self.bare(size, name, key, measure, sql)
                floe = self.run(f"{size}_{name}")
            pairs[name] = Pair(floe, bare)
        return pairs

    def measure(self, size: str) -> dict[str, Pair]:
        """Warm up both sides, then return the median of each process on each side."""
        warm, counted = ROUNDS[size]
        self.generate(size)
        self.prepare_bare(size)
        rounds = [self.round(size, floe_first=n % 2 == 0) for n in range(warm + counted)][warm:]
        return {
            name: Pair(
                statistics.median(one[name].floe for one in rounds),
                statistics.median(one[name].bare for one in rounds),
            )
            for name in rounds[0]
        }

    def audit_seconds(self, dataset: str, names: Sequence[str]) -> list[float]:
        """Audit a dataset's newest version with the checks of other datasets; return medians."""
        number = self.workspace.dataset_id(dataset)
        with self.workspace.catalog.reading() as session:
            version = latest_ready(session, number)
            assert version is not None
            place = stored_version(self.workspace, dataset, version)
        frame = format_of(self.workspace, dataset).read(self.workspace.site, self.spark, place)
        taken: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(2 + CHECK_ROUNDS):
            for name in names:
                audited = replace(place, spec=self.workspace.dataset(name))
                taken[name].append(
                    _seconds(partial(_audit, self.workspace, self.spark, audited, frame))
                )
        return [statistics.median(taken[name][2:]) for name in names]


def _audit(
    workspace: Workspace, spark: "SparkSession", place: StoredVersion, frame: "DataFrame"
) -> None:
    audited = audit_version(workspace, spark, place, frame)
    assert not audited.failures, audited.reason
    assert len(audited.verdicts) == len(place.spec.checks)


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def declared() -> dict[str, Any]:
    """The project: tables and queries at both scales, and small processes."""
    datasets: dict[str, Any] = {
        "checked.one": {"checks": ONE_CHECK},
        "checked.same": {"checks": SAME_COLUMNS},
        "checked.ten": {"checks": [*ONE_CHECK, *NINE_MORE]},
    }
    processes: dict[str, Any] = {}
    for size, scale in SCALES.items():
        for table in COLUMNS:
            datasets[f"{size}.{table}"] = {}
            processes[f"make_{size}_{table}"] = {
                "sql": table_sql(table, scale),
                "outputs": {table: f"{size}.{table}"},
            }
        for name, reads, key, measure, sql in QUERIES:
            datasets[f"{size}.{name}"] = {"checks": checks_on(key, measure)}
            processes[f"{size}_{name}"] = {
                "inputs": {table: f"{size}.{table}" for table in reads},
                "sql": sql,
                "outputs": {name: f"{size}.{name}"},
            }
    for number in range(SMALL_PROCESSES):
        datasets[f"many.d{number}"] = {"checks": [{"kind": "row_count", "min": 1}]}
        processes[f"many_{number}"] = {
            "inputs": {"supplier": "small.supplier"},
            "sql": f"SELECT s_nationkey, count(*) AS suppliers, {number} AS which FROM supplier "
            "GROUP BY s_nationkey",
            "outputs": {"d": f"many.d{number}"},
        }
    return {"name": "bench", "datasets": datasets, "processes": processes}


@contextmanager
def opened(folder: Path) -> Iterator[Bench]:
    """Create the project in a folder, start its server, and stop it at the end."""
    (folder / "floe.yaml").write_text(yaml.safe_dump(declared(), sort_keys=False))
    environ = {k: v for k, v in os.environ.items() if not k.startswith("FLOE_")}
    site = load_site(ProjectPaths(folder), environ)
    ensure_server(site)
    try:
        with open_workspace(site) as workspace, SparkSessions(site).session() as spark:
            yield Bench(workspace, spark)
    finally:
        stop_server(site)


def run() -> Iterator[Result]:
    """Yield all results of one warm server."""
    with tempfile.TemporaryDirectory(prefix="floe-bench-") as folder, opened(Path(folder)) as bench:
        yield _small(bench)
        yield _parallel(bench)
        yield _large(bench)
        yield from _checks(bench)


def _small(bench: Bench) -> Result:
    pairs = bench.measure("small")
    floe, bare = _sums(pairs)
    more = sum(pair.more for pair in pairs.values()) / len(pairs)
    return Result(
        "pipeline, scale 0.1, seconds more than bare Spark, per process",
        more,
        ALLOWED_SECONDS,
        unit=" s",
        note=f"{floe:.2f} s against {bare:.2f} s for {len(pairs)} processes",
    )


def _large(bench: Bench) -> Result:
    floe, bare = _sums(bench.measure("large"))
    note = f"{floe:.2f} s against {bare:.2f} s for {len(QUERIES)} processes"
    return Result("pipeline, scale 1 / bare Spark", floe / bare, ALLOWED_SHARE, note=note)


def _checks(bench: Bench) -> Iterator[Result]:
    """Compare ten checks with one check of one column, and with one of the same columns.

    Together they separate the cost of a check from the cost of reading its columns.
    """
    names = ["checked.one", "checked.same", "checked.ten"]
    one, same, ten = bench.audit_seconds("large.lineitem", names)
    note = f"{ten:.2f} s against {one:.2f} s on 6,000,000 rows"
    yield Result(
        "audit, ten checks of 8 columns / one of one", ten / one, ALLOWED_CHECKS, note=note
    )
    note = f"{ten:.2f} s against {same:.2f} s on 6,000,000 rows"
    yield Result("audit, ten checks / one of the same columns", ten / same, ALLOWED_CHECKS,
                 note=note)  # fmt: skip


def _parallel(bench: Bench) -> Result:
    names = [f"many_{number}" for number in range(SMALL_PROCESSES)]
    options = BatchOptions(DAY, processes=names, parallel=SMALL_PROCESSES)
    started = time.perf_counter()
    outcomes = run_batch(bench.workspace, bench.sparks, options).outcomes
    seconds = time.perf_counter() - started
    wrong = [one for one in outcomes if one.state != DONE]
    said = f"; first: {wrong[0].reason.splitlines()[0]}" if wrong else ""
    return Result(
        f"pipeline, {SMALL_PROCESSES} small processes at once, that failed",
        len(wrong),
        0,
        unit="",
        note=f"{SMALL_PROCESSES / seconds:.1f} processes/s, first versions of all{said}",
    )


def _sums(pairs: dict[str, Pair]) -> tuple[float, float]:
    return sum(pair.floe for pair in pairs.values()), sum(pair.bare for pair in pairs.values())
