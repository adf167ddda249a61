"""Decide which processes a new version starts, and for which date. Pure.

Subscriptions are indexed by dataset, so the cost of a change depends on its readers and not on the
size of the project. A process starts once for a set of input versions: its run key is derived from
them, so deciding again after an interruption does not start it twice.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

from floe.spec import ProcessSpec, ProjectSpec
from floe.spec.calendars import WEEKDAYS
from floe.spec.processes import Input

STARTED_BY_DATASETS = frozenset({"dataset", "hybrid"})
UP_TO_A_DATE = frozenset({"latest", "last"})
"""Mappings that read the newest versions up to a date rather than those of one date."""
# No run reads a version of another date older than this, even across holidays.
MAX_LOOKBACK = timedelta(days=31)


@dataclass(frozen=True)
class Subscription:
    """A process that waits for versions of a dataset."""

    process: str
    alias: str
    input: Input


@dataclass(frozen=True)
class Candidate:
    """A process that may have to start, and the business date."""

    process: str
    business_date: date


class LaterDates(Protocol):
    """Look up business dates after a given date."""

    def dates_ready(self, datasets: Collection[str], after: date) -> Mapping[str, set[date]]:
        """Return the dates for which each dataset has a READY version."""

    def dates_run(self, processes: Collection[str], after: date) -> Mapping[str, set[date]]:
        """Return the dates for which each process has run."""


class Subscriptions:
    """All subscriptions of a project, by dataset."""

    def __init__(self, project: ProjectSpec) -> None:
        self._project = project
        self._by_dataset: defaultdict[str, list[Subscription]] = defaultdict(list)
        for name, process in project.processes.items():
            if process.trigger not in STARTED_BY_DATASETS:
                continue
            # An input that does not start the process again may still be one it waits for.
            for alias, process_input in process.inputs.items():
                self._by_dataset[process_input.dataset].append(
                    Subscription(name, alias, process_input)
                )

    def for_dataset(self, dataset: str) -> Sequence[Subscription]:
        """Return the subscriptions to a dataset."""
        return self._by_dataset.get(dataset, ())

    def candidates(self, dataset: str, version_date: date) -> Iterator[Candidate]:
        """Yield the processes that read a new version, each with the date that reads it."""
        for subscription in self.for_dataset(dataset):
            day = self._reading_date(subscription.input, version_date)
            if day is not None:
                yield Candidate(subscription.process, day)

    def later_candidates(
        self, dataset: str, version_date: date, later: LaterDates
    ) -> list[Candidate]:
        """Return the later dates that were waiting for the first version of a dataset.

        A process that reads the latest version up to a date cannot start while there is none.
        Dates that have run already had a version: a newer one from an earlier date does not
        repeat them.
        """
        waiting = {
            subscription.process
            for subscription in self.for_dataset(dataset)
            if subscription.input.mapping in UP_TO_A_DATE
        }
        dated_inputs = {name: self._dated_inputs(name) for name in waiting}
        datasets = {
            process_input.dataset for inputs in dated_inputs.values() for process_input in inputs
        }
        if not datasets:
            return []
        ready = later.dates_ready(datasets, version_date - MAX_LOOKBACK)
        waiting_dates = {
            name: {day for day in self._reading_dates(inputs, ready) if day > version_date}
            for name, inputs in dated_inputs.items()
        }
        waiting_dates = {name: days for name, days in waiting_dates.items() if days}
        ran = later.dates_run(waiting_dates.keys(), version_date) if waiting_dates else {}
        return [
            Candidate(name, day)
            for name, days in sorted(waiting_dates.items())
            for day in sorted(days - ran.get(name, set()))
        ]

    def _dated_inputs(self, process: str) -> list[Input]:
        inputs = self._project.processes[process].inputs.values()
        return [
            process_input for process_input in inputs if process_input.mapping not in UP_TO_A_DATE
        ]

    def _reading_dates(
        self, inputs: Iterable[Input], ready: Mapping[str, set[date]]
    ) -> Iterator[date]:
        for process_input in inputs:
            for day in ready.get(process_input.dataset, ()):
                reading = self._reading_date(process_input, day)
                if reading is not None:
                    yield reading

    def _reading_date(self, process_input: Input, version_date: date) -> date | None:
        """Return the business date whose run reads a version of this date."""
        if process_input.mapping == "previous_day":
            return version_date + timedelta(days=1)
        if process_input.mapping == "previous_business_day":
            name = process_input.calendar or self._project.calendar or WEEKDAYS
            calendar = self._project.calendar_named(name)
            # The previous business day is never a holiday, so no run reads this version.
            if not calendar.is_business_day(version_date):
                return None
            return calendar.next_business_day(version_date)
        # "Up to a date" inputs start the run of that date; see later_candidates for later dates.
        return version_date


# The version tags that a run reads, by input alias.
Reads = Mapping[str, Sequence[str]]


class InputHistory(Protocol):
    """Look up the versions that inputs would read, and those that earlier runs read."""

    def versions(self, process_input: Input, business_date: date) -> Sequence[str]:
        """Return the tags that an input would read now; empty when no version is READY."""

    def consumed(self, process: str, business_date: date) -> Iterable[Reads]:
        """Return what the runs of this date read, newest first, without failed runs."""


@dataclass(frozen=True)
class MissingInput:
    """An input without a READY version."""

    alias: str
    input: Input


@dataclass(frozen=True)
class Ready:
    """A process that can start."""

    process: str
    business_date: date
    reads: Reads
    repeats: int = 0
    """How often runs read these versions before, when later ones were withdrawn since."""

    @property
    def run_key(self) -> str:
        """A key that is the same for the same versions."""
        read = [f"{alias}={','.join(tags)}" for alias, tags in sorted(self.reads.items())]
        repeats = [f"again {self.repeats}"] if self.repeats else []
        key = "\n".join((self.process, self.business_date.isoformat(), *read, *repeats))
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        return f"{self.process}/{self.business_date}/{digest}"


@dataclass(frozen=True)
class Waiting:
    """A process that cannot start yet."""

    process: str
    business_date: date
    missing: Sequence[MissingInput]


@dataclass(frozen=True)
class Done:
    """A process that has already read the current input versions."""

    process: str
    business_date: date
    reads: Reads


Decision = Ready | Waiting | Done


def decide(process: str, spec: ProcessSpec, business_date: date, history: InputHistory) -> Decision:
    """Decide whether a process starts for a date, waits, or has nothing new to read."""
    reads = {
        alias: tuple(history.versions(process_input, business_date))
        for alias, process_input in spec.inputs.items()
    }
    missing = [
        MissingInput(alias, process_input)
        for alias, process_input in spec.inputs.items()
        if not reads[alias] and not process_input.optional
    ]
    if missing:
        return Waiting(process, business_date, missing)
    # Inputs with `triggers: false` never start a process again.
    triggering = {
        alias: reads[alias]
        for alias, process_input in spec.inputs.items()
        if process_input.triggers
    }
    same = [
        all(tuple(before.get(alias, ())) == tags for alias, tags in triggering.items())
        for before in history.consumed(process, business_date)
    ]
    # Only the newest run counts: readers no longer see what older runs wrote.
    if same and same[0]:
        return Done(process, business_date, reads)
    return Ready(process, business_date, triggering, repeats=sum(same))


def decide_all(
    candidates: Iterable[Candidate], processes: Mapping[str, ProcessSpec], history: InputHistory
) -> list[Decision]:
    """Decide on each candidate once, in the order of their first occurrence."""
    return [
        decide(candidate.process, processes[candidate.process], candidate.business_date, history)
        for candidate in dict.fromkeys(candidates)
    ]
