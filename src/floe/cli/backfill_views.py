"""What `floe backfill` shows: batches, progress, and how far it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from floe.cli.output import console, err, print_facts, table
from floe.orchestration.backfilling.driving import Watcher

if TYPE_CHECKING:
    from rich.progress import TaskID

    from floe.orchestration.backfilling.batches import Batch
    from floe.orchestration.backfilling.driving import Plan, Standing

PROGRESS_SECONDS = 2.0


def describe_plan(plan: "Plan") -> dict[str, Any]:
    """A plan as JSON."""
    return {
        "backfill": plan.name,
        "job": plan.reach.job,
        "partitions": len(plan.keys),
        "left": plan.left,
        "batches": [
            {"start": one.keys[0], "end": one.keys[-1], "partitions": len(one.keys)}
            for one in plan.batches
        ],
    }


def show_plan(plan: "Plan") -> None:
    """Print a plan for people."""
    count = f"{plan.left} of {len(plan.keys)} partitions"
    if not plan.batches:
        console.print(f"Nothing is left of {len(plan.keys)} partitions.")
        return
    rows = [
        {"run": number, "from": one.keys[0], "to": one.keys[-1], "partitions": len(one.keys)}
        for number, one in enumerate(plan.batches, start=1)
    ]
    console.print(table(f"{plan.name} would make {count} by the job {plan.reach.job}", rows))


def describe_standing(name: str, standing: "Standing") -> dict[str, Any]:
    """How far a backfill is, as JSON."""
    from floe.orchestration.backfilling.history import range_of_run

    return {
        "backfill": name,
        "state": _state(standing),
        "partitions": len(standing.keys),
        "done": standing.done,
        "next": standing.next,
        "reason": standing.failed.reason if standing.failed is not None else None,
        "runs": [
            {
                "run_id": run.run_id,
                "start": range_of_run(run)[0],
                "end": range_of_run(run)[1],
                "status": run.status.value,
            }
            for run in standing.runs
        ],
    }


def show_standing(name: str, standing: "Standing") -> None:
    """Print how far a backfill is."""
    facts = {
        "state": _state(standing),
        "made": f"{standing.done} of {len(standing.keys)} partitions",
        "next": standing.next,
        "runs": len(standing.runs),
        "failed": standing.failed.run_id if standing.failed is not None else None,
        "why": (standing.failed.reason or None) if standing.failed is not None else None,
    }
    print_facts(name, facts)


def show_end(name: str, standing: "Standing", *, stopped: bool) -> None:
    """Print what became of a backfill, and what to do next."""
    made = f"{standing.done} of {len(standing.keys)} partitions are made"
    if standing.next is None:
        console.print(f"{name}: all {len(standing.keys)} partitions are made.", markup=False)
        return
    resume = f"Go on with: floe backfill {name} --resume"
    if stopped:
        err.print(f"Stopped: {made}, the next is {standing.next}. {resume}", markup=False)
        return
    failed = standing.failed
    if failed is not None:
        err.print(f"The run {failed.run_id} ended as {failed.status}.", style="red", markup=False)
        if failed.reason:
            err.print(failed.reason, markup=False)
    err.print(f"{made}; {standing.next} is not. {resume}", style="red", markup=False)


def _state(standing: "Standing") -> str:
    from floe.orchestration.backfilling.history import UNDER_WAY

    if any(run.status in UNDER_WAY for run in standing.runs):
        return "RUNNING"
    if standing.next is None:
        return "DONE"
    return standing.failed.status if standing.failed is not None else "INCOMPLETE"


class BackfillView(Watcher):
    """A bar of all partitions, with the batch that is being made."""

    def __init__(self, name: str, where: str, *, quiet: bool) -> None:
        self._name, self._where = name, where
        self._quiet = quiet
        self._batches = 0
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=err,
            disable=quiet or not err.is_terminal,
        )
        self._task: TaskID | None = None
        # Without a bar there is nobody to look at it, and looking costs time.
        self.progress_seconds = None if self._bar.disable else PROGRESS_SECONDS

    @contextmanager
    def shown(self, plan: "Plan") -> Iterator[None]:
        """Show the bar for a while."""
        self._batches = len(plan.batches)
        self._say(f"{self._name}: {plan.left} of {len(plan.keys)} partitions, {self._where}")
        made = len(plan.keys) - plan.left
        self._task = self._bar.add_task(self._name, total=len(plan.keys), completed=made)
        with self._bar:
            yield

    def on_wait(self, run_id: str) -> None:
        """Say which run is waited for."""
        self._say(f"waiting for the run {run_id}")

    def on_batch(self, number: int, batch: "Batch", run_id: str) -> None:
        """Say which run a batch is."""
        said = f"batch {number} of {self._batches}: {batch.shown}"
        if self._task is not None:
            self._bar.update(self._task, description=said)
        self._say(f"{said}, run {run_id}")

    def on_progress(self, done: int) -> None:
        """Let the bar grow."""
        if self._task is not None:
            self._bar.update(self._task, completed=done)

    def _say(self, line: str) -> None:
        if not self._quiet:
            self._bar.console.print(line, markup=False)
