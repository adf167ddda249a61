"""What `floe run` shows: a plan, progress, and what came of it."""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from floe.cli.output import console, err, print_facts, table

if TYPE_CHECKING:
    from floe.execution.batch import BatchReport, Outcome, Watcher
    from floe.execution.planning import RunPlan
    from floe.execution.runner import RunResult
    from floe.execution.site import Site
    from floe.execution.versions.arrivals import Arrival

STYLES = {"DONE": "green", "FAILED": "red", "SKIPPED": "yellow", "WAITING": "yellow"}


def describe_plan(
    site: "Site", plan: "RunPlan", deliveries: Mapping[str, str], note: str
) -> dict[str, Any]:
    """A plan as JSON, with what it would receive and what is to be said of its date."""
    return {
        "process": plan.process,
        "business_date": plan.business_date.isoformat(),
        "partition": plan.partition,
        "note": note or None,
        "engine": plan.spec.runs_on,
        "params": dict(plan.params),
        "inputs": {
            alias: {
                "dataset": one.dataset,
                "versions": one.tags,
                "delivery": deliveries.get(alias),
            }
            for alias, one in plan.inputs.items()
        },
        "outputs": {
            alias: {"dataset": one.dataset, "version": one.tag, "write": one.mode}
            for alias, one in plan.outputs.items()
        },
        "work": _work(site, plan),
    }


def _work(site: "Site", plan: "RunPlan") -> dict[str, str]:
    spec = plan.spec
    if spec.sql is not None:
        return {"sql": site.read_text(spec.sql)}
    if spec.steps:
        return {
            step.name: site.read_text(step.sql) if step.sql else f"function {step.function}"
            for step in spec.steps
        }
    if spec.function is not None:
        return {"function": spec.function}
    if spec.command is not None:
        return {"command": " ".join(spec.command)}
    texts = [site.read_text(statement) for statement in spec.statements]
    return {"statements": ";\n".join(texts)} if texts else {"procedure": str(spec.procedure)}


def show_plan(site: "Site", plan: "RunPlan", deliveries: Mapping[str, str], note: str) -> None:
    """Print a plan for people."""
    facts: dict[str, Any] = {"engine": plan.spec.runs_on}
    for alias, one in plan.inputs.items():
        tags = ", ".join(one.tags) or deliveries.get(alias, "no version yet")
        facts[f"reads {alias}"] = f"{one.dataset} {tags}"
    for alias, output in plan.outputs.items():
        facts[f"writes {alias}"] = f"{output.dataset} {output.tag} ({output.mode})"
    for name, value in plan.params.items():
        facts[f"param {name}"] = str(value)
    print_facts(f"{plan.process} for {plan.key}", facts)
    if note:
        console.print(note, style="yellow", markup=False)
    for name, text in _work(site, plan).items():
        console.print(f"-- {name}", style="dim", markup=False)
        console.print(text.strip(), markup=False)
    console.print()


def describe_result(result: "RunResult") -> dict[str, Any]:
    """What became of a run, as JSON."""
    return {
        "run_id": result.run_id,
        "process": result.process,
        "key": result.key,
        "outputs": [vars(output) for output in result.outputs],
        "seconds": round(result.seconds, 3),
        "attempts": result.attempts,
        "log": result.log,
        "repeated": result.repeated,
    }


def describe_batch(report: "BatchReport") -> dict[str, Any]:
    """What became of a batch, as JSON."""
    return {
        "batch": report.batch,
        "ok": report.ok,
        "arrivals": [_arrival(arrival) for arrival in report.arrivals],
        "processes": [
            {
                "process": outcome.process,
                "state": outcome.state,
                "reason": outcome.reason,
                "run": None if outcome.result is None else describe_result(outcome.result),
            }
            for outcome in report.outcomes
        ],
    }


def _arrival(arrival: "Arrival") -> dict[str, Any]:
    names = ("dataset", "tag", "state", "reason", "rows", "new")
    return {name: getattr(arrival, name) for name in names}


def show_result(result: "RunResult") -> None:
    """Print what a run made."""
    if result.repeated:
        console.print(f"Run {result.run_id} had succeeded before; nothing was done.")
        return
    rows = [
        {"dataset": one.dataset, "version": one.tag, "rows": one.rows, "bytes": one.size}
        for one in result.outputs
    ]
    title = f"{result.process} for {result.key}: {result.seconds:.1f} s"
    console.print(table(title, rows) if rows else f"{title}, and no version was left to make.")
    console.print(f"Run {result.run_id}", style="dim")


def show_batch(report: "BatchReport") -> None:
    """Print what a batch came to."""
    rows = [_batch_row(outcome) for outcome in report.outcomes]
    console.print(table("Processes", rows))
    failed = [outcome for outcome in report.outcomes if outcome.state != "DONE"]
    for outcome in failed:
        console.print(f"{outcome.process}: {outcome.reason}", style="red", markup=False)
    begun = any(outcome.state in ("DONE", "FAILED") for outcome in report.outcomes)
    if failed and begun:
        console.print(f"When the cause is gone: floe run --resume {report.batch}", markup=False)


def _batch_row(outcome: "Outcome") -> dict[str, Any]:
    outputs = outcome.result.outputs if outcome.result else ()
    return {
        "process": outcome.process,
        "state": outcome.state,
        "makes": "\n".join(f"{one.dataset} {one.tag}" for one in outputs) or None,
        "rows": sum(one.rows or 0 for one in outputs) if outputs else None,
        "seconds": f"{outcome.result.seconds:.1f}" if outcome.result else None,
    }


class BatchView:
    """Shows progress: a bar on a terminal, plain lines elsewhere, nothing beside JSON."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total, self._quiet = total, quiet
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=err,
            transient=True,
            disable=quiet or not err.is_terminal,
        )
        self._task = self._progress.add_task("starting Spark", total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    @property
    def watcher(self) -> "Watcher":
        """Whom the batch is to tell."""
        from floe.execution.batch import Watcher

        return Watcher(self._arrived, self._started, self._ended, self._line)

    def say(self, line: str) -> None:
        """Print a line beside the progress."""
        self._print(line, "dim")

    def _arrived(self, arrival: "Arrival") -> None:
        version = f" {arrival.tag}" if arrival.tag else ""
        reason = f": {arrival.reason}" if arrival.reason else ""
        style = "red" if arrival.state == "REJECTED" else ""
        self._print(f"{arrival.dataset}{version} {arrival.state}{reason}", style)

    def _started(self, process: str) -> None:
        self._progress.update(self._task, description=process)

    def _ended(self, outcome: "Outcome") -> None:
        self._progress.advance(self._task)
        self._print(f"{outcome.process}: {outcome.state}", STYLES[outcome.state])

    def _line(self, process: str, line: str) -> None:
        self._print(f"  {process}: {line}", "dim")

    def _print(self, line: str, style: str = "") -> None:
        if not self._quiet:
            self._progress.console.print(line, style=style or None, markup=False)
