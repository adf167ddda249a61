"""The output of `floe backfill`: batches and progress."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from floe.cli.output import console, err, print_facts, table
from floe.orchestration.backfilling.driver import Watcher

if TYPE_CHECKING:
    from rich.progress import TaskID

    from floe.orchestration.backfilling.batches import Batch
    from floe.orchestration.backfilling.driver import BackfillProgress, Plan

PROGRESS_SECONDS = 2.0


def describe_plan(plan: "Plan") -> dict[str, Any]:
    """Return a plan as JSON."""
    return {
        "backfill": plan.name,
        "job": plan.scope.job,
        "partitions": len(plan.keys),
        "left": plan.left,
        "batches": [
            {"start": batch.keys[0], "end": batch.keys[-1], "partitions": len(batch.keys)}
            for batch in plan.batches
        ],
    }


def show_plan(plan: "Plan") -> None:
    """Print a plan as a table."""
    count = f"{plan.left} of {len(plan.keys)} partitions"
    if not plan.batches:
        console.print(f"Nothing to do: all {len(plan.keys)} partitions are done.")
        return
    rows = [
        {"run": run, "from": batch.keys[0], "to": batch.keys[-1], "partitions": len(batch.keys)}
        for run, batch in enumerate(plan.batches, start=1)
    ]
    console.print(table(f"{plan.name}: job {plan.scope.job} would run {count}", rows))


def describe_progress(name: str, progress: "BackfillProgress") -> dict[str, Any]:
    """Return a backfill's progress as JSON."""
    from floe.orchestration.backfilling.history import range_of_run

    return {
        "backfill": name,
        "state": _state(progress),
        "partitions": len(progress.keys),
        "done": progress.done,
        "next": progress.next,
        "reason": progress.failed.reason if progress.failed is not None else None,
        "runs": [
            {
                "run_id": run.run_id,
                "start": range_of_run(run)[0],
                "end": range_of_run(run)[1],
                "status": run.status.value,
            }
            for run in progress.runs
        ],
    }


def show_progress(name: str, progress: "BackfillProgress") -> None:
    """Print a backfill's progress."""
    facts = {
        "state": _state(progress),
        "done": f"{progress.done} of {len(progress.keys)} partitions",
        "next": progress.next,
        "runs": len(progress.runs),
        "failed": progress.failed.run_id if progress.failed is not None else None,
        "why": (progress.failed.reason or None) if progress.failed is not None else None,
    }
    print_facts(name, facts)


def show_end(name: str, progress: "BackfillProgress", *, stopped: bool) -> None:
    """Print how a backfill ended, and what to do next."""
    done = f"{progress.done} of {len(progress.keys)} partitions are done"
    if progress.next is None:
        console.print(f"{name}: all {len(progress.keys)} partitions are done.", markup=False)
        return
    resume = f"Continue with: floe backfill {name} --resume"
    if stopped:
        err.print(f"Stopped: {done}, next is {progress.next}. {resume}", markup=False)
        return
    failed = progress.failed
    if failed is not None:
        err.print(f"Run {failed.run_id} ended as {failed.status}.", style="red", markup=False)
        if failed.reason:
            err.print(failed.reason, markup=False)
    err.print(f"{done}; next is {progress.next}. {resume}", style="red", markup=False)


def _state(progress: "BackfillProgress") -> str:
    from floe.orchestration.backfilling.history import UNDER_WAY

    if any(run.status in UNDER_WAY for run in progress.runs):
        return "RUNNING"
    if progress.next is None:
        return "DONE"
    return progress.failed.status if progress.failed is not None else "INCOMPLETE"


class BackfillView(Watcher):
    """Shows a progress bar of all partitions, with the current batch."""

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
        # Without a bar, do not ask for the progress: asking costs time.
        self.progress_seconds = None if self._bar.disable else PROGRESS_SECONDS

    @contextmanager
    def show(self, plan: "Plan") -> Iterator[None]:
        """Show the bar while the batches run."""
        self._batches = len(plan.batches)
        self._say(f"{self._name}: {plan.left} of {len(plan.keys)} partitions, {self._where}")
        done = len(plan.keys) - plan.left
        self._task = self._bar.add_task(self._name, total=len(plan.keys), completed=done)
        with self._bar:
            yield

    def on_wait(self, run_id: str) -> None:
        """Print the run that the backfill waits for."""
        self._say(f"waiting for run {run_id}")

    def on_batch(self, index: int, batch: "Batch", run_id: str) -> None:
        """Print the batch and its run."""
        message = f"batch {index} of {self._batches}: {batch.shown}"
        if self._task is not None:
            self._bar.update(self._task, description=message)
        self._say(f"{message}, run {run_id}")

    def on_progress(self, done: int) -> None:
        """Advance the bar."""
        if self._task is not None:
            self._bar.update(self._task, completed=done)

    def _say(self, line: str) -> None:
        if not self._quiet:
            self._bar.console.print(line, markup=False)
