"""`floe backfill`: batches run in order, and a stopped backfill resumes without gaps or repeats."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, DagsterInstance, DagsterRun
from typer.testing import CliRunner

from floe.cli import app
from floe.execution.workspace import load_site
from floe.orchestration.instance import open_instance
from floe.settings import find_project
from tests.orchestration.projects import make_project
from tools.processes import running

pytestmark = pytest.mark.slow

ASSETS = """
    import time
    from pathlib import Path

    from dagster import AssetExecutionContext, asset

    HERE = Path(__file__).parent

    def is_held():
        held, calls = HERE / "held", (HERE / "calls").read_text().splitlines()
        return held.exists() and len(calls) >= int(held.read_text())

    def make(name, key):
        with (HERE / "calls").open("a") as file:
            file.write(f"{name} {key}\\n")
        # Wait here until the test continues, however slow the machine is.
        while is_held():
            time.sleep(0.05)
        if (HERE / "broken").exists() and (HERE / "broken").read_text() == f"{name} {key}":
            raise ValueError("the disk is full")

    @asset
    def raw(context: AssetExecutionContext) -> None:
        make("raw", context.partition_key)

    @asset(deps=[raw])
    def clean(context: AssetExecutionContext) -> None:
        make("clean", context.partition_key)
"""
FLOE_YAML = """
name: night
orchestration:
  asset_modules: [mine]
  partitions:
    daily: {type: time_window, start: 2026-01-01, end: 2026-06-01}
    regions: {type: static, partition_keys: [us, eu]}
    both: {type: multi, partitions: {day: daily, region: regions}}
    clients: {type: dynamic}
  assets:
    "*": {partitions: %s}
  jobs:
    nightly: {type: batch, selection: ["*"]}
  backfills:
    spring:
      job: nightly
      partition_range: {start: %s, end: %s}
      batch_size: 10
      tags: {why: audit}
"""
FIRST = date(2026, 1, 1)


def days(count: int) -> list[str]:
    return [(FIRST + timedelta(days=number)).isoformat() for number in range(count)]


def make_night(folder: Path, partitions: str = "daily", last: str = "2026-01-12") -> Path:
    start = "acme" if partitions == "clients" else "2026-01-01"
    return make_project(folder, FLOE_YAML % (partitions, start, last), {"mine.py": ASSETS})


@pytest.fixture(autouse=True)
def home_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


@pytest.fixture(autouse=True)
def modules_as_before() -> Iterator[None]:
    path = list(sys.path)
    yield
    sys.path[:] = path
    sys.modules.pop("mine", None)


def backfill(folder: Path, *words: str) -> tuple[int, str]:
    """Call the command; return its exit code and its output."""
    sys.modules.pop("mine", None)
    result = CliRunner().invoke(app, ["backfill", "spring", "-p", str(folder), *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return getattr(result.exception, "exit_code", -1), str(result.exception)
    return result.exit_code, result.output


def answer(folder: Path, *words: str) -> tuple[int, Any]:
    sys.modules.pop("mine", None)
    result = CliRunner().invoke(app, ["backfill", "spring", "-p", str(folder), "--json", *words])
    return result.exit_code, json.loads(result.stdout)


def calls(folder: Path) -> list[tuple[str, str]]:
    file = folder / "calls"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(line.split()[0], line.split()[1]) for line in lines]


def runs(folder: Path) -> list[DagsterRun]:
    """Return the runs of a project, oldest first."""
    with open_instance(load_site(find_project(folder))) as instance:
        return list(reversed(instance.get_runs()))


def made(folder: Path) -> Counter[tuple[str, str]]:
    """Count the materializations of each partition of each asset."""
    with open_instance(load_site(find_project(folder))) as instance:
        return Counter(
            (name, str(record.partition_key))
            for name in ("raw", "clean")
            for record in instance.fetch_materializations(AssetKey(name), limit=1000).records
        )


def once(keys: list[str]) -> dict[tuple[str, str], int]:
    return {(name, key): 1 for name in ("raw", "clean") for key in keys}


def ranges(folder: Path) -> list[tuple[str, str]]:
    tags = [run.tags for run in runs(folder)]
    return [
        (
            one.get("dagster/asset_partition_range_start") or one["dagster/partition"],
            one.get("dagster/asset_partition_range_end") or one["dagster/partition"],
        )
        for one in tags
    ]


@pytest.mark.slow
def test_runs_of_a_backfill_without_services_are_in_the_catalog(tmp_path: Path) -> None:
    project = make_night(tmp_path, last="2026-01-02")
    assert backfill(project, "--batch-size", "1")[0] == 0
    listed = CliRunner().invoke(app, ["runs", "-p", str(project), "--json"])
    runs = json.loads(listed.stdout)
    assert Counter(run["status"] for run in runs) == {"SUCCESS": 4}, listed.stdout
    assert {run["business_date"] for run in runs} == {"2026-01-01", "2026-01-02"}


def test_120_partitions_run_in_order_in_batches_of_10(tmp_path: Path) -> None:
    make_night(tmp_path, last="2026-04-30")
    code, said = answer(tmp_path)
    assert code == 0
    assert (said["ok"], said["state"], said["partitions"], said["done"]) == (True, "DONE", 120, 120)
    keys = days(120)
    batches = [keys[place : place + 10] for place in range(0, 120, 10)]
    assert ranges(tmp_path) == [(batch[0], batch[-1]) for batch in batches]
    # Each run makes an asset for all of its keys in order, then the next one.
    assert calls(tmp_path) == [
        (name, key) for batch in batches for name in ("raw", "clean") for key in batch
    ]
    assert made(tmp_path) == once(keys)


def test_runs_carry_the_name_of_the_backfill_and_its_tags(tmp_path: Path) -> None:
    make_night(tmp_path)
    assert backfill(tmp_path)[0] == 0
    found = runs(tmp_path)
    assert ranges(tmp_path) == [("2026-01-01", "2026-01-10"), ("2026-01-11", "2026-01-12")]
    assert len({run.tags["floe/backfill_id"] for run in found}) == 1
    for run in found:
        assert (run.tags["floe/backfill"], run.tags["why"]) == ("spring", "audit")
        assert (run.job_name, run.is_success) == ("nightly", True)


def test_options_override_range_and_batch_size(tmp_path: Path) -> None:
    make_night(tmp_path)
    options = ["--from", "2026-02-01", "--to", "2026-02-03", "--batch-size", "2"]
    code, said = answer(tmp_path, *options, "--dry-run")
    assert (code, said["left"]) == (0, 3)
    assert [(one["start"], one["end"]) for one in said["batches"]] == [
        ("2026-02-01", "2026-02-02"),
        ("2026-02-03", "2026-02-03"),
    ]
    assert runs(tmp_path) == []
    assert backfill(tmp_path, *options)[0] == 0
    assert ranges(tmp_path) == [("2026-02-01", "2026-02-02"), ("2026-02-03", "2026-02-03")]


def test_a_failed_key_stops_the_backfill_and_resume_runs_only_what_is_left(
    tmp_path: Path,
) -> None:
    make_night(tmp_path, last="2026-01-25")
    (tmp_path / "broken").write_text("clean 2026-01-14")
    code, said = backfill(tmp_path)
    assert code == 1
    assert "ValueError: the disk is full It failed for the partition 2026-01-14." in said
    assert "13 of 25 partitions are done; next is 2026-01-14." in said
    assert "floe backfill spring --resume" in said
    assert ("raw", "2026-01-21") not in calls(tmp_path)
    code, status = answer(tmp_path, "--status")
    assert (code, status["state"], status["next"]) == (0, "FAILURE", "2026-01-14")

    (tmp_path / "broken").unlink()
    (tmp_path / "calls").unlink()
    assert backfill(tmp_path, "--resume")[0] == 0
    assert made(tmp_path) == once(days(25))
    # Partitions that the failed run finished do not run again, and the order is kept.
    batch, rest = days(25)[13:20], days(25)[20:]
    assert calls(tmp_path) == [
        *(("clean", key) for key in batch),
        *((name, key) for name in ("raw", "clean") for key in rest),
    ]
    code, status = answer(tmp_path, "--status")
    assert (status["state"], status["done"], status["next"]) == ("DONE", 25, None)
    assert backfill(tmp_path, "--resume")[0] == 0
    assert made(tmp_path) == once(days(25))


def test_without_resume_all_partitions_run_again(tmp_path: Path) -> None:
    make_night(tmp_path, last="2026-01-02")
    assert backfill(tmp_path)[0] == 0
    assert backfill(tmp_path)[0] == 0
    assert set(made(tmp_path).values()) == {2}


def test_with_two_dimensions_all_keys_of_a_date_run_before_the_next_date(tmp_path: Path) -> None:
    make_night(tmp_path, "both", last="2026-01-03")
    assert backfill(tmp_path, "--batch-size", "5")[0] == 0
    keys = [f"{day}|{region}" for day in days(3) for region in ("us", "eu")]
    assert [key for name, key in calls(tmp_path) if name == "raw"] == keys
    assert ranges(tmp_path) == [(keys[0], keys[3]), (keys[4], keys[5])]
    assert made(tmp_path) == once(keys)


def test_dynamic_keys_run_in_the_order_they_were_added(tmp_path: Path) -> None:
    make_night(tmp_path, "clients", last="zeta")
    code, said = backfill(tmp_path)
    assert (code, said) == (
        2,
        "There is no partition 'acme'. There are no keys yet: add some first.",
    )
    with open_instance(load_site(find_project(tmp_path))) as instance:
        instance.add_dynamic_partitions("clients", ["acme", "zeta"])
        instance.add_dynamic_partitions("clients", ["beta"])
    assert backfill(tmp_path)[0] == 0
    assert [key for name, key in calls(tmp_path) if name == "raw"] == ["acme", "zeta"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--status", "--cancel"], "Use only one of --status and --cancel."),
        (["--resume", "--from", "2026-01-01"], "--from cannot be used with --resume"),
        (["--status", "--batch-size", "3"], "--batch-size cannot be used with --status"),
        (["--from", "2026-01-01x"], "There is no partition '2026-01-01x'. Write it as %Y-%m-%d"),
        (["--from", "2026-01-05", "--to", "2026-01-04"], "is before the start 2026-01-05"),
    ],
)
def test_an_invalid_call_exits_with_2(tmp_path: Path, words: list[str], said: str) -> None:
    make_night(tmp_path)
    code, found = backfill(tmp_path, *words)
    assert code == 2
    assert said in found


def test_a_backfill_that_never_ran_has_nothing_to_resume(tmp_path: Path) -> None:
    make_night(tmp_path)
    for option in ("--resume", "--status"):
        code, said = backfill(tmp_path, option)
        assert (code, said) == (
            1,
            "The backfill 'spring' was never started. Run: floe backfill spring.",
        )
    code, said = backfill(tmp_path, "--cancel")
    assert (code, said.strip()) == (0, "No run to cancel.")


def started(folder: Path, *words: str) -> AbstractContextManager["subprocess.Popen[str]"]:
    """Run `floe backfill` in the background; stop it at the end of the block."""
    command = "from floe.cli import main; main()"
    return running(
        [sys.executable, "-c", command, "backfill", "spring", "-p", str(folder), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=_environ(),
    )


def _environ() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}


def wait_for(folder: Path, count: int) -> None:
    until = time.monotonic() + 120
    while len(calls(folder)) < count:
        assert time.monotonic() < until, "it did not come so far"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_run_and_exits_with_130(
    tmp_path: Path, number: signal.Signals
) -> None:
    make_night(tmp_path)
    (tmp_path / "held").write_text("14")
    with started(tmp_path) as process:
        wait_for(tmp_path, 14)
        process.send_signal(number)
        said = process.communicate(timeout=120)[0]
    assert process.returncode == 130, said
    assert "Continue with: floe backfill spring --resume" in said
    assert [run.status.value for run in runs(tmp_path)] == ["CANCELED"]
    (tmp_path / "held").unlink()
    assert backfill(tmp_path, "--resume")[0] == 0
    assert made(tmp_path) == once(days(12))


@pytest.mark.slow
def test_a_killed_backfill_resumes_without_gaps_or_repeats(tmp_path: Path) -> None:
    make_night(tmp_path)
    (tmp_path / "held").write_text("15")
    with started(tmp_path) as process:
        wait_for(tmp_path, 15)
        process.kill()
        process.communicate()
    before = made(tmp_path)
    assert 10 < before.total() < 20
    (tmp_path / "held").unlink()
    assert backfill(tmp_path, "--resume")[0] == 0
    assert [run.status.value for run in runs(tmp_path)] == ["FAILURE", "SUCCESS", "SUCCESS"]
    assert made(tmp_path) == once(days(12))


@pytest.mark.slow
def test_another_command_can_inspect_and_cancel_but_not_run_the_same_backfill(
    tmp_path: Path,
) -> None:
    make_night(tmp_path)
    (tmp_path / "held").write_text("12")
    with started(tmp_path) as process:
        wait_for(tmp_path, 12)
        code, said = backfill(tmp_path)
        assert code == 1
        assert f"The process {process.pid} is already running the backfill 'spring'." in said
        code, status = answer(tmp_path, "--status")
        assert (code, status["state"]) == (0, "RUNNING")
        code, canceled = answer(tmp_path, "--cancel")
        assert code == 0
        process.communicate(timeout=120)
    assert process.returncode == 130
    (run,) = runs(tmp_path)
    assert (canceled["canceled"], run.status.value) == ([run.run_id], "CANCELED")


def test_a_backfill_uses_the_projects_dagster_instance(tmp_path: Path) -> None:
    make_night(tmp_path, last="2026-01-01")
    assert backfill(tmp_path)[0] == 0
    with DagsterInstance.from_config(str(tmp_path / ".floe" / "dagster")) as instance:
        assert instance.get_runs_count() == 1
