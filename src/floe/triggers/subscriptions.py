"""Which processes wait for which datasets, and for which of their dates a version counts. Pure.

Asked by dataset, so that a change costs what it concerns and not what there is.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from floe.spec import ProjectSpec
from floe.spec.calendars import WEEKDAYS
from floe.spec.processes import Input

STARTED_BY_DATASETS = frozenset({"dataset", "hybrid"})


@dataclass(frozen=True)
class Subscription:
    """A process that a new version of a dataset can start."""

    process: str
    alias: str
    input: Input


@dataclass(frozen=True)
class Concern:
    """A process and the business date for which something may have to be done."""

    process: str
    business_date: date


class Subscriptions:
    """All subscriptions of a project."""

    def __init__(self, project: ProjectSpec) -> None:
        self._project = project
        self._by_dataset: defaultdict[str, list[Subscription]] = defaultdict(list)
        for name, process in project.processes.items():
            if process.trigger not in STARTED_BY_DATASETS:
                continue
            for alias, one in process.inputs.items():
                if one.triggers:
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
        # The latest up to a date is new for that date; for later ones only once they are due.
        return version_date
