"""Start-up time of commands: it must not dominate short work.

`floe run` is compared with the same call in a process that has everything loaded, on the same warm
Spark and catalog: the difference is the time for imports.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.result import Result

QUICK_ROUNDS, RUN_ROUNDS, WARM_UP = 9, 5, 2
ALLOWED_HELP, ALLOWED_DATASETS, ALLOWED_RUN = 0.2, 0.35, 1.5
RUN = ["run", "payments.sum_by_country", "--date", "2026-01-05"]

# Reads one line per call and answers with its exit code and seconds.
WARM = """
import io, json, sys, time
from contextlib import redirect_stdout
from floe.cli import app
for line in sys.stdin:
    started = time.perf_counter()
    code = 0
    with redirect_stdout(io.StringIO()):
        try:
            app(json.loads(line), standalone_mode=False)
        except SystemExit as exit:
            code = exit.code or 0
    print(json.dumps([code, time.perf_counter() - started]), flush=True)
"""


def run() -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="floe-bench-") as folder:
        project = Path(folder) / "payments"
        environ = _environ(Path(folder))
        _call([_floe(), "init", str(project)], environ, Path(folder))
        _call([_floe(), "register"], environ, project)
        yield from _quick(environ, project)
        try:
            yield from _runs(environ, project)
        finally:
            _call([_floe(), "spark", "stop"], environ, project)


def _quick(environ: dict[str, str], project: Path) -> Iterator[Result]:
    commands = ([sys.executable, "-c", "pass"], [_floe(), "--help"], [_floe(), "datasets"])
    rounds = [
        [_call(command, environ, project) for command in commands]
        for _ in range(WARM_UP + QUICK_ROUNDS)
    ]
    bare, shown, listed = (min(side) for side in zip(*rounds[WARM_UP:], strict=True))
    yield Result("floe --help, beyond a bare Python", shown - bare, ALLOWED_HELP, unit=" s",
                 note=f"{shown:.2f} s against {bare:.2f} s")  # fmt: skip
    yield Result("floe datasets, a new process", listed, ALLOWED_DATASETS, unit=" s")


def _runs(environ: dict[str, str], project: Path) -> Iterator[Result]:
    with _warm(environ, project) as call:
        rounds = [
            (call(RUN), _call([_floe(), *RUN], environ, project))
            for _ in range(WARM_UP + RUN_ROUNDS)
        ]
    warm, new = (statistics.median(side) for side in zip(*rounds[WARM_UP:], strict=True))
    yield Result(
        "floe run of a small process / the same in a warm process",
        new / warm,
        ALLOWED_RUN,
        note=f"{new:.2f} s against {warm:.2f} s",
    )


@contextmanager
def _warm(environ: dict[str, str], project: Path) -> "Iterator[WarmCalls]":
    process = subprocess.Popen(
        [sys.executable, "-c", WARM], env=environ, cwd=project, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield WarmCalls(process)
    finally:
        process.communicate()


class WarmCalls:
    """Calls commands in one long-running process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def __call__(self, arguments: list[str]) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        code, seconds = json.loads(self._process.stdout.readline())
        assert code == 0, f"floe {' '.join(arguments)} ended with {code}"
        return float(seconds)


def _call(command: list[str], environ: dict[str, str], folder: Path) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environ, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _floe() -> str:
    return str(Path(sys.executable).with_name("floe"))


def _environ(folder: Path) -> dict[str, str]:
    """As installed: with compiled files, which this tree may not have."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("FLOE_")}
    ours.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**ours, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
