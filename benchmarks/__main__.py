"""Run the benchmarks: each line measured, target, MET or MISSED. `make bench [ONLY=lineage]`."""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from benchmarks.result import Result

HERE = Path(__file__).parent
# In the order in which floe is built.
MODULES = (
    "validate",
    "lineage",
    "search",
    "ingest",
    "reads",
    "startup",
    "client_import",
    "pipeline",
    "backfill",
    "triggers",
    "reaction",
    "orchestration",
)


def chosen() -> list[str]:
    """All modules, or those that ONLY names."""
    only = os.environ.get("ONLY", "").replace(",", " ").split()
    return [name for name in MODULES if not only or name in only]


def results() -> Iterator[tuple[str, Result]]:
    """Run the chosen modules, one result after the other."""
    for name in chosen():
        for result in import_module(f"benchmarks.{name}").run():
            yield name, result


def show(result: Result) -> str:
    """One line for people."""
    sign = "≤" if result.better == "lower" else "≥"
    verdict = "MET" if result.met else "MISSED"
    measured = f"{result.measured:.2f}{result.unit}"
    note = f"  ({result.note})" if result.note else ""
    return (
        f"{result.name:<66} {measured:>9}  {sign} {result.target:g}{result.unit}  {verdict}{note}"
    )


def main() -> int:
    """Print every line, keep them in results.json, and fail on a miss."""
    started = time.monotonic()
    lines = []
    for module, result in results():
        print(show(result), flush=True)
        lines.append({"module": module, **asdict(result), "met": result.met})
    (HERE / "results.json").write_text(json.dumps(lines, indent=2) + "\n")
    missed = sum(not line["met"] for line in lines)
    print(f"{len(lines) - missed} met, {missed} missed, {time.monotonic() - started:.0f} s")
    return 1 if missed or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
