"""What the catalog knows of the day, for people."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from floe.catalog.checks import page_results
from floe.catalog.runs import ENDED, OutputRow, RunRow, describe_outputs, find_run, page_runs
from floe.cli.context import open_project_catalog
from floe.cli.output import console, table
from floe.errors import FloeError
from tools.demo.running import Floe, Stand, shown

MOST_RUNS = 1_000
OBSERVER_SECONDS, LOOK_SECONDS = 120.0, 0.5


class NotObservedError(FloeError):
    """The catalog has not heard of the end of a run."""

    def __init__(self, run_id: str, log: Path) -> None:
        super().__init__(
            f"The run {run_id} has ended, and the catalog does not know it. "
            f"Its observer works in Dagster's daemon, whose log is {shown(log)}"
        )


@dataclass(frozen=True)
class Made:
    """A run of the day, and the version that it made."""

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
    """Wait until the catalog knows how a run of Dagster ended: that is told last."""
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
        day = made_in(session, run_id)
    rows = [
        {
            "asset": one.asset,
            "version": one.output.version_tag,
            "state": one.output.state,
            "rows": one.output.row_count,
            "took": one.seconds,
        }
        for one in day
    ]
    if rows:
        console.print()
        console.print(table("Assets", rows))
    show_checks(day)


def made_in(session: Session, run_id: str) -> list[Made]:
    """Return what a run of Dagster made, in the order in which it was begun."""
    runs = page_runs(session, MOST_RUNS, parent_run_uuid=run_id)
    made = [
        Made(run, output, checks_of(session, output))
        for run in runs
        for output in describe_outputs(session, run.run_uuid)
    ]
    return sorted(made, key=lambda one: (one.run.start_ts is None, one.run.start_ts, one.asset))


def checks_of(session: Session, output: OutputRow) -> list[tuple[str, str]]:
    """Return the checks of a version, each with its verdict."""
    found = page_results(session, output.dataset_id, dataset_version_id=output.dataset_version_id)
    return sorted((one.name, one.status) for one in found)


def show_checks(day: Sequence[Made]) -> None:
    """Show the checks below what they are on."""
    verdicts = [verdict for one in day for _, verdict in one.checks]
    passed = verdicts.count("PASS")
    console.print(f"Checks: {passed} of {len(verdicts)} passed", style="bold")
    for one in day:
        if one.checks:
            console.print(f"  {one.asset}", markup=False)
        for name, verdict in one.checks:
            style = "green" if verdict == "PASS" else "red"
            console.print(f"    {verdict:5}{name}", style=style, markup=False)


def show_where(stand: Stand, root: Path) -> None:
    """Say where to go on."""
    console.print(f"\nDagster   {stand.dagster}", markup=False)
    console.print(f"API       {stand.api}/api/v1", markup=False)
    console.print(f"Token     {shown(root / '.floe' / 'token')}", markup=False)
    console.print(f"Log in    floe session link -p {shown(root)}", markup=False)
