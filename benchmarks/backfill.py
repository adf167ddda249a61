"""Backfills: 120 partitions in batches of 10, compared with one Dagster run per partition.

Both compute the same two Python assets of the same project, in this process and on the same
Dagster home, batch by batch in turns, so that other load affects both alike. The assets do nothing:
the benchmark measures the cost of runs, which batches save.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from dagster import AssetKey

from benchmarks.result import Result
from floe.orchestration.backfilling.driver import Overrides, Watcher
from floe.orchestration.backfilling.in_process_launcher import QUIET
from floe.orchestration.backfilling.open_backfill import OpenBackfill, open_backfill

PARTITIONS, BATCH = 120, 10
NAME = "spring"
FLOE_YAML = f"""
name: backfill-bench
orchestration:
  asset_modules: [bench_assets]
  partitions:
    daily: {{type: time_window, start: 2026-01-01, end: 2026-06-01}}
  assets:
    "*": {{partitions: daily}}
  jobs:
    nightly: {{type: batch, selection: ["*"]}}
  backfills:
    {NAME}:
      job: nightly
      partition_range: {{start: 2026-01-01, end: 2026-04-30}}
      batch_size: {BATCH}
"""
ASSETS = """
from dagster import AssetExecutionContext, asset

@asset
def raw(context: AssetExecutionContext) -> None:
    context.partition_key

@asset(deps=[raw])
def clean(context: AssetExecutionContext) -> None:
    context.partition_key
"""


def run() -> Iterator[Result]:
    """Measure how many times faster batches are."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "floe.yaml").write_text(FLOE_YAML)
        (Path(folder) / "bench_assets.py").write_text(ASSETS)
        with open_backfill(Path(folder), NAME) as found:
            single, batched = _measure(found)
    yield Result(
        f"backfill, {PARTITIONS} partitions in batches of {BATCH}, against a run for each",
        single / batched,
        3.0,
        better="higher",
        note=f"{single:.1f} s against {batched:.1f} s, 2 assets",
    )


def _measure(found: OpenBackfill) -> tuple[float, float]:
    """Return the seconds with a run per partition, and with batches."""
    job = found.parts.definitions().resolve_job_def(found.job)
    launcher, plan = found.launcher(), found.driver.plan(Overrides())

    def make_each(keys: tuple[str, ...]) -> None:
        for key in keys:
            result = job.execute_in_process(QUIET, found.instance, partition_key=key)
            assert result.success

    # The first run of each also pays for shared setup.
    make_each(plan.keys[:1])
    single = batched = 0.0
    for batch in plan.batches:
        single += _seconds(partial(make_each, batch.keys))
        alone = replace(plan, batches=(batch,))
        batched += _seconds(partial(found.driver.run, alone, launcher, Watcher()))
    assert found.driver.progress(plan).done == PARTITIONS
    for name in ("raw", "clean"):
        assert len(found.instance.get_materialized_partitions(AssetKey(name))) == PARTITIONS
    return single, batched


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
