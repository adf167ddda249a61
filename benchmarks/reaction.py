"""The time from the arrival of a file to the run it starts, under `floe up` with default intervals.

Elapsed time, because that is how long people wait. The run records when it started.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.result import Result

ROUNDS = 5
ALLOWED_SECONDS = 10.0
MOST_SECONDS = 120.0
FLOE_YAML = """
name: night
orchestration:
  asset_modules: [assets]
  jobs: {load: {type: batch, selection: ["*"]}}
  sensors: {landing: {type: file_watcher, job: load, path: landing, existing: process}}
"""
ASSETS = """
import time
from pathlib import Path

from dagster import asset


@asset
def loaded() -> None:
    with Path("began").open("a") as file:
        file.write(f"{time.time()}\\n")
"""


def run() -> Iterator[Result]:
    """Measure the slowest of some files that arrive one after the other."""
    with tempfile.TemporaryDirectory(prefix="floe-bench-") as folder, _up(Path(folder)) as project:
        seconds = [_react(project, number) for number in range(ROUNDS)]
    listed = ", ".join(f"{one:.1f}" for one in seconds)
    yield Result(
        "a file lands → its run has begun, the slowest of five",
        max(seconds),
        ALLOWED_SECONDS,
        unit=" s",
        note=f"{listed} s",
    )


def _react(project: Path, number: int) -> float:
    landed = time.time()
    (project / "landing" / f"{number}.csv").write_text("1\n")
    while len(began := _began(project)) <= number:
        assert time.time() - landed < MOST_SECONDS, "no run began"
        time.sleep(0.05)
    # The next file arrives at another time between two polls.
    time.sleep(1.3)
    return began[number] - landed


def _began(project: Path) -> list[float]:
    file = project / "began"
    return [float(line) for line in file.read_text().splitlines()] if file.exists() else []


@contextmanager
def _up(project: Path) -> Iterator[Path]:
    (project / "floe.yaml").write_text(FLOE_YAML)
    (project / "assets.py").write_text(ASSETS)
    (project / "landing").mkdir()
    _floe(project, "up", "--detach", "--only", "api,dagster", "--port", "0", "--dagster-port", "0")
    try:
        yield project
    finally:
        _floe(project, "down")


def _floe(project: Path, *words: str) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FLOE_")}
    command = [sys.executable, "-m", "floe.cli", *words]
    subprocess.run(command, cwd=project, env=environ, check=True, stdout=subprocess.DEVNULL)
