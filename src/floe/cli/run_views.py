"""The output of `floe run`: plan, progress and result."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from floe.cli.output import console, err, print_facts, table

if TYPE_CHECKING:
    from floe.execution.batch import BatchReport, Outcome, Watcher
    from floe.execution.planning import PlannedSource, RunPlan
    from floe.execution.runner import RunResult
    from floe.execution.site import Site
    from floe.execution.versions.arrivals import Arrival

STYLES = {"DONE": "green", "FAILED": "red", "SKIPPED": "yellow", "WAITING": "yellow"}


@dataclass(frozen=True)
class ShownPlan:
    """A plan with the facts that are printed beside it."""

    site: "Site"
    plan: "RunPlan"
    deliveries: Mapping[str, str]
    """The deliveries that the run would receive, by alias."""
    sources: "Mapping[str, PlannedSource]"
    """Inputs that earlier processes of the same plan write, by alias."""
    note: str
    """Warning that the date is not a business day."""


def describe_plan(shown: ShownPlan) -> dict[str, Any]:
    """Return a plan as JSON."""
    plan = shown.plan
    return {
        "process": plan.process,
        "business_date": plan.business_date.isoformat(),
        "partition": plan.partition,
        "note": shown.note or None,
        "engine": plan.spec.runs_on,
        "params": dict(plan.params),
        "inputs": {
            alias: {
                "dataset": source.dataset,
                "versions": shown.sources[alias].tags if alias in shown.sources else source.tags,
                "delivery": shown.deliveries.get(alias),
                "made_by": shown.sources[alias].process if alias in shown.sources else None,
            }
            for alias, source in plan.inputs.items()
        },
        "outputs": {
            alias: {"dataset": output.dataset, "version": output.tag, "write": output.mode}
            for alias, output in plan.outputs.items()
        },
        "work": _work(shown.site, plan),
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


def show_plan(shown: ShownPlan) -> None:
    """Print a plan."""
    plan = shown.plan
    facts: dict[str, Any] = {"engine": plan.spec.runs_on}
    for alias, source in plan.inputs.items():
        facts[f"reads {alias}"] = f"{source.dataset} {_versions_to_read(shown, alias)}"
    for alias, output in plan.outputs.items():
        facts[f"writes {alias}"] = f"{output.dataset} {output.tag} ({output.mode})"
    for name, value in plan.params.items():
        facts[f"param {name}"] = str(value)
    print_facts(f"{plan.process} for {plan.key}", facts)
    if shown.note:
        console.print(shown.note, style="yellow", markup=False)
    for name, text in _work(shown.site, plan).items():
        console.print(f"-- {name}", style="dim", markup=False)
        console.print(text.strip(), markup=False)
    console.print()


def _versions_to_read(shown: ShownPlan, alias: str) -> str:
    """Return the versions that an input reads, and what writes or delivers them."""
    if alias in shown.sources:
        source = shown.sources[alias]
        return f"{', '.join(source.tags)} (written by {source.process} in this plan)"
    parts = [", ".join(shown.plan.inputs[alias].tags), shown.deliveries.get(alias, "")]
    return "; ".join(filter(None, parts)) or "no version yet"


def describe_result(result: "RunResult") -> dict[str, Any]:
    """Return a run's result as JSON."""
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
    """Return a batch's result as JSON."""
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
    """Print the versions that a run wrote."""
    if result.repeated:
        console.print(f"Run {result.run_id} has already succeeded. Nothing was done.")
        return
    rows = [
        {
            "dataset": output.dataset,
            "version": output.tag,
            "rows": output.rows,
            "bytes": output.size,
        }
        for output in result.outputs
    ]
    title = f"{result.process} for {result.key}: {result.seconds:.1f} s"
    console.print(table(title, rows) if rows else f"{title}, no new version.")
    console.print(f"Run {result.run_id}", style="dim")


def show_batch(report: "BatchReport") -> None:
    """Print how the processes of a batch ended."""
    rows = [_batch_row(outcome) for outcome in report.outcomes]
    console.print(table("Processes", rows))
    failed = [outcome for outcome in report.outcomes if outcome.state != "DONE"]
    for outcome in failed:
        console.print(f"{outcome.process}: {outcome.reason}", style="red", markup=False)
    started = any(outcome.state in ("DONE", "FAILED") for outcome in report.outcomes)
    if failed and started:
        console.print(
            f"Fix the cause, then continue with: floe run --resume {report.batch}", markup=False
        )


def _batch_row(outcome: "Outcome") -> dict[str, Any]:
    outputs = outcome.result.outputs if outcome.result else ()
    written = [f"→ {output.dataset} {output.tag}" for output in outputs]
    return {
        # One column for both: two columns of names do not fit 80 characters.
        "process": "\n".join([outcome.process, *written]),
        "state": outcome.state,
        "rows": sum(output.rows or 0 for output in outputs) if outputs else None,
        "seconds": f"{outcome.result.seconds:.1f}" if outcome.result else None,
    }


class BatchView:
    """Shows progress: a bar on a terminal, lines in a log, nothing with --json."""

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
        """The callbacks for the batch."""
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
