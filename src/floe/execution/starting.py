"""What new versions start: the log of changes is read page by page, and each page is decided on.

All that a page concerns is asked of the catalog in a few questions, so that a change costs the
same however many processes there are.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from floe.catalog.readiness import (
    Asked,
    dates_after,
    dates_run_after,
    facets_of_runs,
    find_dataset_ids,
    list_ready_changes,
    page_after,
    tags_on,
    tags_until,
)
from floe.execution.planning import wanted_date
from floe.execution.workspace import Workspace
from floe.spec.identity import DatasetId, floe_process
from floe.spec.processes import Input
from floe.triggers import Concern, Decision, Subscriptions, decide_all
from floe.triggers.deciding import Reads

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

PAGE = 1_000


@dataclass(frozen=True)
class Page:
    """What a part of the log came to."""

    position: int
    """How far the log was read."""
    decisions: Sequence[Decision] = ()
    last: bool = True
    """Whether there was no more to read."""


def read_page(
    workspace: Workspace, subscriptions: Subscriptions, after: int, size: int = PAGE
) -> Page:
    """Read the changes after a position, and decide on all that they concern."""
    with workspace.catalog.reading() as session:
        start, end = page_after(session, after, size)
        changes = list_ready_changes(session, start, end) if end > start else []
        later = _Later(session, workspace)
        concerns: dict[Concern, None] = {}
        new = dict.fromkeys(
            (one.dataset, one.business_date) for one in changes if one.namespace == workspace.lake
        )
        for dataset, day in new:
            concerns |= dict.fromkeys(subscriptions.concerned(dataset, day))
            concerns |= dict.fromkeys(subscriptions.overdue(dataset, day, later))
        state = GatheredState(session, workspace, concerns)
        decisions = decide_all(concerns, workspace.site.spec.processes, state)
    return Page(end, decisions, last=end - start < size)


class _Later:
    """What the catalog knows of dates after one."""

    def __init__(self, session: "Session", workspace: Workspace) -> None:
        self._session, self._workspace = session, workspace

    def dates_ready(self, datasets: Collection[str], after: date) -> Mapping[str, set[date]]:
        numbers = _numbers(self._session, self._workspace, datasets)
        found = dates_after(self._session, after, numbers.values())
        return {name: found.get(number, set()) for name, number in numbers.items()}

    def dates_run(self, processes: Collection[str], after: date) -> Mapping[str, set[date]]:
        keys = {_key(self._workspace, name): name for name in processes}
        found = dates_run_after(self._session, after, keys)
        return {keys[key]: days for key, days in found.items()}


class GatheredState:
    """Versions and runs as the catalog has them, asked for all concerns at once."""

    def __init__(
        self, session: "Session", workspace: Workspace, concerns: Collection[Concern]
    ) -> None:
        self._session, self._workspace = session, workspace
        read = [
            (one, concern.business_date)
            for concern in concerns
            for one in workspace.site.spec.processes[concern.process].inputs.values()
        ]
        self._numbers = _numbers(session, workspace, {one.dataset for one, _ in read})
        self._dated = self._ask_dated(read)
        self._latest = tags_until(
            session, [self._asked(one, day) for one, day in read if self._wanted(one, day) is None]
        )
        self._runs = self._ask_runs(concerns)

    def versions(self, one: Input, business_date: date) -> Sequence[str]:
        wanted = self._wanted(one, business_date)
        if wanted is None:
            return self._latest.get(self._asked(one, business_date), ())
        tag = self._dated.get((self._numbers[one.dataset], wanted))
        return () if tag is None else (tag,)

    def consumed(self, process: str, business_date: date) -> Sequence[Reads]:
        return self._runs.get((process, business_date), ())

    def _wanted(self, one: Input, day: date) -> date | None:
        return wanted_date(self._workspace, one, day)

    def _asked(self, one: Input, day: date) -> Asked:
        since = None if one.max_age is None else day - one.max_age
        count = one.count if one.mapping == "last" else 1
        return Asked(self._numbers[one.dataset], day, since, count or 1)

    def _ask_dated(self, read: Iterable[tuple[Input, date]]) -> dict[tuple[int, date], str]:
        wanted: defaultdict[date, set[int]] = defaultdict(set)
        for one, day in read:
            asked = self._wanted(one, day)
            if asked is not None:
                wanted[asked].add(self._numbers[one.dataset])
        return {
            (number, day): tag
            for day, numbers in wanted.items()
            for number, tag in tags_on(self._session, day, numbers).items()
        }

    def _ask_runs(self, concerns: Iterable[Concern]) -> dict[tuple[str, date], list[Reads]]:
        asked: defaultdict[date, dict[str, str]] = defaultdict(dict)
        for one in concerns:
            asked[one.business_date][_key(self._workspace, one.process)] = one.process
        return {
            (names[key], day): [(one or {}).get("floe", {}).get("inputs") or {} for one in facets]
            for day, names in asked.items()
            for key, facets in facets_of_runs(self._session, day, names).items()
        }


def _numbers(session: "Session", workspace: Workspace, datasets: Iterable[str]) -> dict[str, int]:
    named = {DatasetId(workspace.lake, name).full_name: name for name in datasets}
    return {named[full]: number for full, number in find_dataset_ids(session, named).items()}


def _key(workspace: Workspace, process: str) -> str:
    return floe_process(workspace.site.spec.name, process).key
