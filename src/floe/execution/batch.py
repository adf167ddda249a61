"""Receive deliveries and run: one process, or all of a project in dependency order."""

import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import date
from graphlib import TopologicalSorter

from floe.catalog.versions import REJECTED
from floe.errors import FloeError
from floe.execution.cancellation import Cancellation, CancelledError
from floe.execution.input_deliveries import (
    OnArrival,
    explain_missing_inputs,
    receive_for,
    refuse_rejected,
)
from floe.execution.planning import InputsMissingError, RunOptions, process_spec
from floe.execution.recovery import find_remaining_work
from floe.execution.runner import RunContext, RunResult, run_process
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.arrivals import Arrival
from floe.execution.workspace import Workspace
from floe.spec import ProcessSpec
from floe.spec.processes import EARLIER_DATES

DONE, FAILED, SKIPPED, WAITING = "DONE", "FAILED", "SKIPPED", "WAITING"
PARALLEL = max(4, 2 * (os.cpu_count() or 1))


@dataclass(frozen=True)
class Outcome:
    """How one process of a batch ended."""

    process: str
    state: str
    result: RunResult | None = None
    reason: str = ""


@dataclass(frozen=True)
class BatchReport:
    """How a batch ended."""

    batch: str
    arrivals: Sequence[Arrival]
    outcomes: Sequence[Outcome]

    @property
    def ok(self) -> bool:
        return all(outcome.state == DONE for outcome in self.outcomes)


@dataclass(frozen=True)
class Watcher:
    """Callbacks for the progress of a batch."""

    on_arrival: Callable[[Arrival], None] = lambda _: None
    on_start: Callable[[str], None] = lambda _: None
    on_outcome: Callable[[Outcome], None] = lambda _: None
    on_line: Callable[[str, str], None] = lambda _process, _line: None


@dataclass(frozen=True)
class BatchOptions:
    """Which processes to run, and for which date."""

    business_date: date
    partition: str | None = None
    processes: Sequence[str] | None = None
    batch: str = field(default_factory=lambda: str(uuid.uuid4()))
    parallel: int = PARALLEL
    resumed: Mapping[str, str] = field(default_factory=dict)
    """The run id to resume, by process."""


def receive_and_run(
    workspace: Workspace,
    sparks: SparkSessions,
    options: RunOptions,
    context: RunContext,
    on_arrival: OnArrival,
) -> RunResult:
    """Receive what a process reads and run it; raise if one of its deliveries is rejected."""
    arrivals: list[Arrival] = []
    # A run that repeats another one reads the same versions, whatever has arrived since.
    if options.as_run is None and options.business_date is not None:
        spec = process_spec(workspace, options.process)
        arrivals = receive_for(workspace, sparks, [spec], options.business_date, on_arrival)
        refuse_rejected(spec, arrivals)
        context.cancellation.check()
    with explain_missing_inputs(arrivals):
        return run_process(workspace, sparks, options, context)


def run_batch(
    workspace: Workspace,
    sparks: SparkSessions,
    options: BatchOptions,
    *,
    watcher: Watcher | None = None,
    cancellation: Cancellation | None = None,
) -> BatchReport:
    """Run processes in dependency order, independent ones in parallel.

    A process downstream of a failure is skipped.
    """
    watcher, cancellation = watcher or Watcher(), cancellation or Cancellation()
    return _Batch(workspace, sparks, options, watcher, cancellation).run()


class _Batch:
    def __init__(
        self,
        workspace: Workspace,
        sparks: SparkSessions,
        options: BatchOptions,
        watcher: Watcher,
        cancellation: Cancellation,
    ) -> None:
        self._workspace, self._sparks, self._options = workspace, sparks, options
        self._watcher, self._cancellation = watcher, cancellation
        every = workspace.site.spec.processes
        names = list(every) if options.processes is None else list(options.processes)
        self._processes = {name: every[name] for name in names}
        self._upstream = upstream_of(self._processes)
        self._refused: dict[str, str] = {}
        self._arrivals: list[Arrival] = []
        self._outcomes: dict[str, Outcome] = {}

    def run(self) -> BatchReport:
        self._arrivals = self._receive()
        order = prepare_sorter(self._upstream)
        running: dict[Future[Outcome], str] = {}
        with ThreadPoolExecutor(self._options.parallel, thread_name_prefix="run") as pool:
            while order.is_active():
                for name in order.get_ready():
                    if reason := self._blocking_reason(name):
                        self._record(Outcome(name, SKIPPED, reason=reason))
                        order.done(name)
                    else:
                        running[pool.submit(self._run, name)] = name
                if running:
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        order.done(running.pop(future))
                        self._record(future.result())
        outcomes = [self._outcomes[name] for name in self._processes]
        return BatchReport(self._options.batch, self._arrivals, outcomes)

    def _receive(self) -> list[Arrival]:
        """Receive deliveries, and remember the rejected ones: their readers are skipped."""

        def note(arrival: Arrival) -> None:
            self._cancellation.check()
            if arrival.state == REJECTED:
                self._refused[arrival.dataset] = arrival.reason
            self._watcher.on_arrival(arrival)

        day, processes = self._options.business_date, self._processes.values()
        return receive_for(self._workspace, self._sparks, processes, day, note)

    def _blocking_reason(self, name: str) -> str:
        """Return why a process cannot start, or an empty string."""
        if self._cancellation.error is not None:
            return "the batch was stopped"
        for before, needed in self._upstream[name].items():
            if needed and self._outcomes[before].state != DONE:
                return self._upstream_reason(before)
        for process_input in self._processes[name].inputs.values():
            if process_input.dataset in self._refused and not process_input.optional:
                reason = self._refused[process_input.dataset]
                return f"the delivery of '{process_input.dataset}' was rejected: {reason}"
        return ""

    def _upstream_reason(self, before: str) -> str:
        """Name the upstream process that failed or waits; a skipped one already names it."""
        outcome = self._outcomes[before]
        words = {FAILED: "failed", WAITING: "waits for its inputs"}
        return f"'{before}' {words[outcome.state]}" if outcome.state in words else outcome.reason

    def _run(self, name: str) -> Outcome:
        self._watcher.on_start(name)
        options = RunOptions(name, self._options.business_date, self._options.partition)
        context = RunContext(
            parent=self._options.batch,
            listener=lambda line: self._watcher.on_line(name, line),
            cancellation=self._cancellation.child(),
        )
        try:
            if name in self._options.resumed:
                left = find_remaining_work(self._workspace, self._options.resumed[name])
                assert left is not None, "a resumed batch leaves out processes that succeeded"
                options, context = (
                    left.options,
                    replace(context, resumes=left.resumes, skip=left.skip),
                )
            with explain_missing_inputs(self._arrivals):
                result = run_process(self._workspace, self._sparks, options, context)
        except CancelledError as error:
            return Outcome(name, SKIPPED, reason=str(error))
        except InputsMissingError as error:
            return Outcome(name, WAITING, reason=str(error))
        except Exception as error:  # noqa: BLE001 - reported as FAILED; other processes continue
            kind = "" if isinstance(error, FloeError) else f"{type(error).__name__}: "
            return Outcome(name, FAILED, reason=f"{kind}{error}")
        return Outcome(name, DONE, result)

    def _record(self, outcome: Outcome) -> None:
        self._outcomes[outcome.process] = outcome
        self._watcher.on_outcome(outcome)


def upstream_of(processes: Mapping[str, ProcessSpec]) -> dict[str, dict[str, bool]]:
    """Return each process's upstream processes, and whether it requires them.

    Inputs of earlier dates do not count: this batch does not write those versions.
    """
    writers: dict[str, list[str]] = {}
    for name, process in processes.items():
        for output in process.outputs.values():
            writers.setdefault(output.dataset, []).append(name)
    waits: dict[str, dict[str, bool]] = {name: {} for name in processes}
    for name, process in processes.items():
        for process_input in process.inputs.values():
            if process_input.mapping in EARLIER_DATES:
                continue
            for writer in writers.get(process_input.dataset, ()):
                if writer != name:
                    needed = not process_input.optional
                    waits[name][writer] = waits[name].get(writer, False) or needed
    return waits


def prepare_sorter(waits: Mapping[str, Iterable[str]]) -> TopologicalSorter[str]:
    """Return a prepared prepare_sorter, which yields processes as their upstream ones finish."""
    sorter = TopologicalSorter({name: list(before) for name, before in waits.items()})
    sorter.prepare()
    return sorter
