"""The cost of `import floe.client`, compared with a Python that does nothing."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.result import Result

ROUNDS = 10
ALLOWED_MS = 100.0


def run() -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as cache:
        # As installed: with compiled files, which this tree may not have.
        environ = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
        subprocess.run([sys.executable, "-c", "import floe.client"], env=environ, check=True)
        bare, imported = _fastest(environ, "pass", "import floe.client")
    yield Result(
        "import floe.client, beyond a bare Python",
        (imported - bare) * 1000,
        ALLOWED_MS,
        unit=" ms",
        note=f"{imported * 1000:.0f} ms against {bare * 1000:.0f} ms",
    )


def _fastest(environ: dict[str, str], *codes: str) -> list[float]:
    """Start Python for each code in turns; return the best time of each."""
    best = [float("inf")] * len(codes)
    for _ in range(ROUNDS):
        for index, code in enumerate(codes):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], env=environ, check=True)
            best[index] = min(best[index], time.perf_counter() - start)
    return best
