"""Which processes wait for which datasets, and for which of their dates a version counts. Pure.

Asked by dataset, so that a change costs what it concerns and not what there is.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

from floe.spec import ProjectSpec
from floe.spec.calendars import WEEKDAYS
from floe.spec.processes import Input

STARTED_BY_DATASETS = frozenset({"dataset", "hybrid"})
UP_TO_A_DATE = frozenset({"latest", "last"})
"""Mappings that read what there is up to a date, and so no date of their own."""
# No run reads a version of another date that lies further back, whatever holidays there are.
FURTHEST_BACK = timedelta(days=31)


@dataclass(frozen=True)
class Subscription:
    """A process that waits for versions of a dataset."""

    process: str
    alias: str
    input: Input


@dataclass(frozen=True)
class Concern:
    """A process and the business date for which something may have to be done."""

    process: str
    business_date: date


class Later(Protocol):
    """What is known of dates after one."""

    def dates_ready(self, datasets: Collection[str], after: date) -> Mapping[str, set[date]]:
        """For which dates datasets have a READY version."""

    def dates_run(self, processes: Collection[str], after: date) -> Mapping[str, set[date]]:
        """For which dates processes have had a run."""


class Subscriptions:
    """All subscriptions of a project."""

    def __init__(self, project: ProjectSpec) -> None:
        self._project = project
        self._by_dataset: defaultdict[str, list[Subscription]] = defaultdict(list)
        for name, process in project.processes.items():
            if process.trigger not in STARTED_BY_DATASETS:
                continue
            # What is no reason to start a process again may still be what it waits for.
            for alias, one in process.inputs.items():
                self._by_dataset[one.dataset].append(Subscription(name, alias, one))

    def of(self, dataset: str) -> Sequence[Subscription]:
        """Return who waits for a dataset."""
        return self._by_dataset.get(dataset, ())

    def concerned(self, dataset: str, version_date: date) -> Iterator[Concern]:
        """Say which processes a new version concerns, each for the date that would read it."""
        for one in self.of(dataset):
            day = self._reading_date(one.input, version_date)
            if day is not None:
                yield Concern(one.process, day)

    def overdue(self, dataset: str, version_date: date, later: Later) -> list[Concern]:
        """Say which later dates a new version concerns, because they have waited for any at all.

        Whoever reads the latest version up to a date could not start as long as there was none.
        A date that has had a run has had a version, and a newer one of before is no reason to
        repeat it.
        """
        waiting = {one.process for one in self.of(dataset) if one.input.mapping in UP_TO_A_DATE}
        beside = {name: self._dated_inputs(name) for name in waiting}
        datasets = {one.dataset for inputs in beside.values() for one in inputs}
        if not datasets:
            return []
        ready = later.dates_ready(datasets, version_date - FURTHEST_BACK)
        asked = {
            name: {day for day in self._reading_dates(inputs, ready) if day > version_date}
            for name, inputs in beside.items()
        }
        asked = {name: days for name, days in asked.items() if days}
        ran = later.dates_run(asked.keys(), version_date) if asked else {}
        return [
            Concern(name, day)
            for name, days in sorted(asked.items())
            for day in sorted(days - ran.get(name, set()))
        ]

    def _dated_inputs(self, process: str) -> list[Input]:
        inputs = self._project.processes[process].inputs.values()
        return [one for one in inputs if one.mapping not in UP_TO_A_DATE]

    def _reading_dates(
        self, inputs: Iterable[Input], ready: Mapping[str, set[date]]
    ) -> Iterator[date]:
        for one in inputs:
            for day in ready.get(one.dataset, ()):
                reading = self._reading_date(one, day)
                if reading is not None:
                    yield reading

    def _reading_date(self, one: Input, version_date: date) -> date | None:
        """Return the business date whose run asks for a version of this date."""
        if one.mapping == "previous_day":
            return version_date + timedelta(days=1)
        if one.mapping == "previous_business_day":
            name = one.calendar or self._project.calendar or WEEKDAYS
            calendar = self._project.calendar_named(name)
            # No business day comes after a holiday as the day after its previous one.
            if not calendar.is_business_day(version_date):
                return None
            return calendar.next_business_day(version_date)
        # The latest up to a date is new for that date; later ones are asked for as overdue.
        return version_date
