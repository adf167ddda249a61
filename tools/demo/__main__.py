"""Run one day of demo/data_engineering through Dagster and show the result."""

import argparse
import sys
import textwrap
import time
from pathlib import Path

from floe.cli.output import console
from floe.errors import FloeError
from tools.demo.launching import Dagster
from tools.demo.running import Addresses, Floe, shorten_path
from tools.demo.showing import show_addresses, show_day, wait_for_observer
from tools.demo.signals import interrupted_by_signals

PROJECT = Path(__file__).resolve().parents[2] / "demo" / "data_engineering"
LOCATION, JOB, DAY = "data-engineering", "shop", "2026-01-05"
FAILED, INTERRUPTED = 1, 130


class DayFailedError(FloeError):
    """A step of the run failed."""

    def __init__(self, failures: list[str], log: Path) -> None:
        reasons = "\n".join(failures)
        super().__init__(f"The run failed:\n{reasons}\nThe log is {shorten_path(log)}")


def main() -> int:
    """Run the demo; return its exit code after everything it started has stopped."""
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="stop at the end, also on a terminal")
    parser.add_argument(
        "--project", type=Path, default=PROJECT, help="folder of another copy of the demo"
    )
    given = parser.parse_args()
    floe = Floe(given.project.resolve())
    stays = sys.stdout.isatty() and not given.once
    try:
        with interrupted_by_signals():
            return run_demo(floe, stays)
    except KeyboardInterrupt:
        console.print("Interrupted.")
        return INTERRUPTED
    except FloeError as error:
        say_failure(f"The demo failed. {error}")
        return FAILED


def say_failure(message: str) -> None:
    """Print an error. Paths are not broken over lines, so that they can be copied."""
    wrapped = [
        textwrap.fill(line, console.width, break_long_words=False, break_on_hyphens=False)
        for line in message.splitlines()
    ]
    console.print("", *wrapped, sep="\n", style="red", markup=False, soft_wrap=True)


def run_demo(floe: Floe, stays: bool) -> int:
    """Start floe, run the day and show it; if `stays`, stay up until Ctrl-C."""
    began = time.monotonic()
    console.print("Starting Spark, the catalog, the API and Dagster for data_engineering.")
    with floe.up() as addresses:
        started = time.monotonic()
        run_day(floe, addresses)
        ended = time.monotonic()
        show_addresses(addresses, floe.root)
        startup, run = started - began, ended - started
        console.print(f"\nTime: {startup:.0f} s to start, {run:.0f} s to run and show the day.")
        if stays:
            stay(floe)
    return 0


def run_day(floe: Floe, addresses: Addresses) -> None:
    """Run the job through Dagster, and show what the catalog has of it."""
    console.print(f"\nRunning the job '{JOB}' for {DAY}: bronze, silver, gold.")
    dagster = Dagster(addresses.dagster, addresses.secret, LOCATION)
    run_id = dagster.launch(JOB, DAY)
    failures = dagster.follow(run_id, console)
    wait_for_observer(floe, run_id)
    show_day(floe, run_id)
    if failures:
        raise DayFailedError(failures, floe.log("workers"))
    floe.show("lineage", "gold.customer_orders", "--upstream", "--kind", "datasets")


def stay(floe: Floe) -> None:
    """Wait for Ctrl-C, or until floe is stopped elsewhere."""
    console.print("Everything stays up. Stop with Ctrl-C.", style="bold")
    try:
        while floe.is_up():
            time.sleep(0.5)
    except KeyboardInterrupt:
        console.print()


if __name__ == "__main__":
    sys.exit(main())
