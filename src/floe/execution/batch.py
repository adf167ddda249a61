"""Run a whole project for a date: what others deliver first, then all processes in their order."""

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import date

from floe.catalog.versions import REJECTED
from floe.errors import FloeError
from floe.execution.cancelling import Cancellation, CancelledError
from floe.execution.ordering import sorter, upstream_of
from floe.execution.planning import InputsMissingError, Wish
from floe.execution.receiving import missing_explained, receive_for
from floe.execution.resuming import remainder_of
from floe.execution.runner import Circumstances, RunResult, run_process
from floe.execution.sparks import Sparks
from floe.execution.versions.arrivals import Arrival
from floe.execution.workspace import Workspace

DONE, FAILED, SKIPPED, WAITING = "DONE", "FAILED", "SKIPPED", "WAITING"
PARALLEL = max(4, 2 * (os.cpu_count() or 1))


@dataclass(frozen=True)
class Outcome:
    """What became of one process in a batch."""

    process: str
    state: str
    result: RunResult | None = None
    reason: str = ""


@dataclass(frozen=True)
class BatchReport:
    """What became of a batch."""

    batch: str
    arrivals: Sequence[Arrival]
    outcomes: Sequence[Outcome]

    @property
    def ok(self) -> bool:
        return all(outcome.state == DONE for outcome in self.outcomes)


@dataclass(frozen=True)
class Watcher:
    """Who is told of the progress of a batch."""

    on_arrival: Callable[[Arrival], None] = lambda _: None
    on_start: Callable[[str], None] = lambda _: None
    on_outcome: Callable[[Outcome], None] = lambda _: None
    on_line: Callable[[str, str], None] = lambda _process, _line: None


@dataclass(frozen=True)
class BatchWish:
    """What is to be run, and for which date."""

    business_date: date
    partition: str | None = None
    processes: Sequence[str] | None = None
    batch: str = field(default_factory=lambda: str(uuid.uuid4()))
    parallel: int = PARALLEL
    resumed: Mapping[str, str] = field(default_factory=dict)
    """The run that each process is to resume, by its name."""


def run_batch(
    workspace: Workspace,
    sparks: Sparks,
    wish: BatchWish,
    *,
    watcher: Watcher | None = None,
    cancellation: Cancellation | None = None,
) -> BatchReport:
    """Run processes in their order, side by side where that is possible.

    Nothing starts that stands on something that failed.
    """
    watcher, cancellation = watcher or Watcher(), cancellation or Cancellation()
    return _Batch(workspace, sparks, wish, watcher, cancellation).run()


class _Batch:
    def __init__(
        self,
        workspace: Workspace,
        sparks: Sparks,
        wish: BatchWish,
        watcher: Watcher,
        cancellation: Cancellation,
    ) -> None:
        self._workspace, self._sparks, self._wish = workspace, sparks, wish
        self._watcher, self._cancellation = watcher, cancellation
        every = workspace.site.spec.processes
        names = list(every) if wish.processes is None else list(wish.processes)
        self._processes = {name: every[name] for name in names}
        self._waits = upstream_of(self._processes)
        self._refused: dict[str, str] = {}
        self._arrivals: list[Arrival] = []
        self._outcomes: dict[str, Outcome] = {}

    def run(self) -> BatchReport:
        self._arrivals = self._receive()
        order = sorter(self._waits)
        running: dict[Future[Outcome], str] = {}
        with ThreadPoolExecutor(self._wish.parallel, thread_name_prefix="run") as pool:
            while order.is_active():
                for name in order.get_ready():
                    if reason := self._obstacle(name):
                        self._settle(Outcome(name, SKIPPED, reason=reason))
                        order.done(name)
                    else:
                        running[pool.submit(self._run, name)] = name
                if running:
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        order.done(running.pop(future))
                        self._settle(future.result())
        outcomes = [self._outcomes[name] for name in self._processes]
        return BatchReport(self._wish.batch, self._arrivals, outcomes)

    def _receive(self) -> list[Arrival]:
        """Look at what was delivered; nothing is to stand on what was rejected."""

        def note(arrival: Arrival) -> None:
            self._cancellation.check()
            if arrival.state == REJECTED:
                self._refused[arrival.dataset] = arrival.reason
            self._watcher.on_arrival(arrival)

        day, processes = self._wish.business_date, self._processes.values()
        return receive_for(self._workspace, self._sparks, processes, day, note)

    def _obstacle(self, name: str) -> str:
        """Say what stands in the way of a process, if anything does."""
        if self._cancellation.error is not None:
            return "the batch was stopped"
        for before, needed in self._waits[name].items():
            if needed and self._outcomes[before].state != DONE:
                return self._fault_of(before)
        for one in self._processes[name].inputs.values():
            if one.dataset in self._refused and not one.optional:
                reason = self._refused[one.dataset]
                return f"the delivery of '{one.dataset}' was rejected: {reason}"
        return ""

    def _fault_of(self, before: str) -> str:
        """Name the process that failed or waits; one that was skipped names it already."""
        outcome = self._outcomes[before]
        words = {FAILED: "failed", WAITING: "waits for its inputs"}
        return f"'{before}' {words[outcome.state]}" if outcome.state in words else outcome.reason

    def _run(self, name: str) -> Outcome:
        self._watcher.on_start(name)
        wish = Wish(name, self._wish.business_date, self._wish.partition)
        how = Circumstances(
            parent=self._wish.batch,
            listener=lambda line: self._watcher.on_line(name, line),
            cancellation=self._cancellation.child(),
        )
        try:
            if name in self._wish.resumed:
                left = remainder_of(self._workspace, self._wish.resumed[name])
                assert left is not None, "what succeeded is not part of the batch any more"
                wish, how = left.wish, replace(how, resumes=left.resumes, skip=left.skip)
            with missing_explained(self._arrivals):
                result = run_process(self._workspace, self._sparks, wish, how)
        except CancelledError as error:
            return Outcome(name, SKIPPED, reason=str(error))
        except InputsMissingError as error:
            return Outcome(name, WAITING, reason=str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the others go on and it is said
            kind = "" if isinstance(error, FloeError) else f"{type(error).__name__}: "
            return Outcome(name, FAILED, reason=f"{kind}{error}")
        return Outcome(name, DONE, result)

    def _settle(self, outcome: Outcome) -> None:
        self._outcomes[outcome.process] = outcome
        self._watcher.on_outcome(outcome)
