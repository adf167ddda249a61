"""A day of demo/data_engineering: floe comes up, the day runs through Dagster, and is shown."""

import argparse
import sys
import textwrap
import time
from pathlib import Path

from floe.cli.output import console
from floe.errors import FloeError
from tools.demo.launching import Dagster
from tools.demo.running import Floe, Stand, shown
from tools.demo.showing import show_day, show_where, wait_for_observer
from tools.demo.signals import interrupted_by_signals

PROJECT = Path(__file__).resolve().parents[2] / "demo" / "data_engineering"
LOCATION, JOB, DAY = "data-engineering", "shop", "2026-01-05"
FAILED, INTERRUPTED = 1, 130


class DayFailedError(FloeError):
    """The run did not make all that it was to make."""

    def __init__(self, failures: list[str], log: Path) -> None:
        reasons = "\n".join(failures)
        super().__init__(f"The run broke:\n{reasons}\nThe log is {shown(log)}")


def main() -> int:
    """Run the demo; return its exit code. Whatever it has started has ended by then."""
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="stop at the end, on a terminal too")
    parser.add_argument("--project", type=Path, default=PROJECT, help="another copy of the shop")
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


def say_failure(said: str) -> None:
    """Say what went wrong. A path stays in one piece, so that it can be copied."""
    wrapped = [
        textwrap.fill(line, console.width, break_long_words=False, break_on_hyphens=False)
        for line in said.splitlines()
    ]
    console.print("", *wrapped, sep="\n", style="red", markup=False, soft_wrap=True)


def run_demo(floe: Floe, stays: bool) -> int:
    """Bring floe up, run the day and show it; stay up until Ctrl-C where there is a terminal."""
    began = time.monotonic()
    console.print("Starting Spark, the catalog, the API and Dagster for data_engineering.")
    with floe.up() as stand:
        started = time.monotonic()
        run_day(floe, stand)
        ended = time.monotonic()
        show_where(stand, floe.root)
        took = f"{started - began:.0f} s to start, {ended - started:.0f} s to run and to look."
        console.print(f"\nThat took {took}")
        if stays:
            stay(floe)
    return 0


def run_day(floe: Floe, stand: Stand) -> None:
    """Run the job through Dagster, and show what the catalog knows of it."""
    console.print(f"\nRunning the job '{JOB}' for {DAY}: bronze, silver, gold.")
    dagster = Dagster(stand.dagster, stand.secret, LOCATION)
    run_id = dagster.launch(JOB, DAY)
    failures = dagster.follow(run_id, console)
    wait_for_observer(floe, run_id)
    show_day(floe, run_id)
    if failures:
        raise DayFailedError(failures, floe.log("workers"))
    floe.show("lineage", "gold.customer_orders", "--upstream", "--kind", "datasets")


def stay(floe: Floe) -> None:
    """Wait until somebody presses Ctrl-C, or stops floe elsewhere."""
    console.print("Everything stays up. Look around; stop with Ctrl-C.", style="bold")
    try:
        while floe.is_up():
            time.sleep(0.5)
    except KeyboardInterrupt:
        console.print()


if __name__ == "__main__":
    sys.exit(main())
