"""Run the benchmarks and compare them with their targets: `make bench [ONLY=lineage]`."""

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
# From the lower packages to the upper ones.
MODULES = (
    "validate",
    "lineage",
    "search",
    "ingest",
    "reads",
    "startup",
    "client_import",
    "commands",
    "pipeline",
    "backfill",
    "triggers",
    "reaction",
    "orchestration",
)


def chosen() -> list[str]:
    """Return all modules, or those that ONLY names."""
    only = os.environ.get("ONLY", "").replace(",", " ").split()
    return [name for name in MODULES if not only or name in only]


def results() -> Iterator[tuple[str, Result]]:
    """Run the chosen modules, one result after the other."""
    for name in chosen():
        for result in import_module(f"benchmarks.{name}").run():
            yield name, result


def show(result: Result) -> str:
    """Format a result as a line of text."""
    sign = "≤" if result.better == "lower" else "≥"
    verdict = "MET" if result.met else "MISSED"
    measured = f"{result.measured:.2f}{result.unit}"
    note = f"  ({result.note})" if result.note else ""
    return (
        f"{result.name:<66} {measured:>9}  {sign} {result.target:g}{result.unit}  {verdict}{note}"
    )


def main() -> int:
    """Print all results, store them in results.json, and fail if a target is missed."""
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
