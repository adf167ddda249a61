"""Show what the catalog has of the demo's day."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from floe.catalog.checks import page_results
from floe.catalog.runs import ENDED, OutputRow, RunRow, describe_run, find_run, page_runs
from floe.cli.context import open_project_catalog
from floe.cli.output import console, table
from floe.errors import FloeError
from tools.demo.running import Addresses, Floe, shorten_path

MOST_RUNS = 1_000
OBSERVER_SECONDS, LOOK_SECONDS = 120.0, 0.5


class NotObservedError(FloeError):
    """The end of a run was not reported to the catalog."""

    def __init__(self, run_id: str, log: Path) -> None:
        super().__init__(
            f"Run {run_id} has ended, but its end was not reported to the catalog. "
            f"Dagster's daemon reports it; its log is {shorten_path(log)}"
        )


@dataclass(frozen=True)
class RunOutput:
    """A run of the day, with a version that it wrote and its checks."""

    run: RunRow
    output: OutputRow
    checks: Sequence[tuple[str, str]]

    @property
    def asset(self) -> str:
        return self.output.full_name.partition("/")[2]

    @property
    def seconds(self) -> str:
        if self.run.start_ts is None or self.run.end_ts is None:
            return "–"
        return f"{(self.run.end_ts - self.run.start_ts).total_seconds():.1f} s"


def wait_for_observer(floe: Floe, run_id: str) -> None:
    """Wait until the catalog has the end of a Dagster run, which is reported last."""
    until = time.monotonic() + OBSERVER_SECONDS
    with console.status("waiting for the catalog"), open_project_catalog(floe.root) as catalog:
        while time.monotonic() < until:
            with catalog.reading() as session:
                run = find_run(session, run_id)
                if run is not None and run.status in ENDED:
                    return
            time.sleep(LOOK_SECONDS)
    raise NotObservedError(run_id, floe.log("daemon"))


def show_day(floe: Floe, run_id: str) -> None:
    """Show each asset with its state, rows and time, and its checks."""
    with open_project_catalog(floe.root) as catalog, catalog.reading() as session:
        day = outputs_of_run(session, run_id)
    rows = [
        {
            "asset": written.asset,
            "version": written.output.version_tag,
            "state": written.output.state,
            "rows": written.output.row_count,
            "took": written.seconds,
        }
        for written in day
    ]
    if rows:
        console.print()
        console.print(table("Assets", rows))
    show_checks(day)


def outputs_of_run(session: Session, run_id: str) -> list[RunOutput]:
    """Return the outputs of a Dagster run, in the order in which their runs started."""
    runs = page_runs(session, MOST_RUNS, parent_run_uuid=run_id)
    outputs = [
        RunOutput(run, output, checks_of(session, output))
        for run in runs
        for output in describe_run(session, run.run_uuid).outputs
    ]
    return sorted(
        outputs,
        key=lambda written: (written.run.start_ts is None, written.run.start_ts, written.asset),
    )


def checks_of(session: Session, output: OutputRow) -> list[tuple[str, str]]:
    """Return the checks of a version with their results."""
    results = page_results(session, output.dataset_id, dataset_version_id=output.dataset_version_id)
    return sorted((result.name, result.status) for result in results)


def show_checks(day: Sequence[RunOutput]) -> None:
    """Show the checks below their asset."""
    verdicts = [verdict for written in day for _, verdict in written.checks]
    passed = verdicts.count("PASS")
    console.print(f"Checks: {passed} of {len(verdicts)} passed", style="bold")
    for written in day:
        if written.checks:
            console.print(f"  {written.asset}", markup=False)
        for name, verdict in written.checks:
            style = "green" if verdict == "PASS" else "red"
            console.print(f"    {verdict:5}{name}", style=style, markup=False)


def show_addresses(addresses: Addresses, root: Path) -> None:
    """Show the addresses of the services and how to log in."""
    console.print(f"\nDagster   {addresses.dagster}", markup=False)
    console.print(f"API       {addresses.api}/api/v1", markup=False)
    console.print(f"Token     {shorten_path(root / '.floe' / 'token')}", markup=False)
    console.print(f"Log in    floe session link -p {shorten_path(root)}", markup=False)
