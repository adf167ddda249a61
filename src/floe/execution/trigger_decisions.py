"""Decide which processes new versions trigger: read the change log page by page.

Each page needs a fixed number of catalog queries, so the cost of a change does not depend on the
number of processes.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from floe.catalog.readiness import (
    TagQuery,
    dates_after,
    dates_run_after,
    facets_of_runs,
    find_dataset_ids,
    list_ready_changes,
    page_bounds,
    tags_on,
    tags_until,
)
from floe.execution.planning import wanted_date
from floe.execution.workspace import Workspace
from floe.spec.identity import DatasetId, floe_process
from floe.spec.processes import Input
from floe.triggers import Candidate, Decision, Subscriptions, decide_all
from floe.triggers.decisions import Reads

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

PAGE = 1_000


@dataclass(frozen=True)
class Page:
    """The decisions on one page of the change log."""

    position: int
    """The position up to which the log was read."""
    decisions: Sequence[Decision] = ()
    last: bool = True
    """Whether this page reached the end of the log."""


def read_page(
    workspace: Workspace, subscriptions: Subscriptions, after: int, size: int = PAGE
) -> Page:
    """Read the changes after a position, and decide on the processes that read them."""
    with workspace.catalog.reading() as session:
        start, end = page_bounds(session, after, size)
        changes = list_ready_changes(session, start, end) if end > start else []
        later = _LaterDates(session, workspace)
        candidates: dict[Candidate, None] = {}
        new = dict.fromkeys(
            (change.dataset, change.business_date)
            for change in changes
            if change.namespace == workspace.lake
        )
        for dataset, day in new:
            candidates |= dict.fromkeys(subscriptions.candidates(dataset, day))
            candidates |= dict.fromkeys(subscriptions.later_candidates(dataset, day, later))
        state = GatheredState(session, workspace, candidates)
        decisions = decide_all(candidates, workspace.site.spec.processes, state)
    return Page(end, decisions, last=end - start < size)


class _LaterDates:
    """Looks up versions and runs of later dates in the catalog."""

    def __init__(self, session: "Session", workspace: Workspace) -> None:
        self._session, self._workspace = session, workspace

    def dates_ready(self, datasets: Collection[str], after: date) -> Mapping[str, set[date]]:
        dataset_ids = _dataset_ids(self._session, self._workspace, datasets)
        dates = dates_after(self._session, after, dataset_ids.values())
        return {name: dates.get(dataset_id, set()) for name, dataset_id in dataset_ids.items()}

    def dates_run(self, processes: Collection[str], after: date) -> Mapping[str, set[date]]:
        keys = {_key(self._workspace, name): name for name in processes}
        dates = dates_run_after(self._session, after, keys)
        return {keys[key]: days for key, days in dates.items()}


class GatheredState:
    """Versions and runs of all candidates, queried together."""

    def __init__(
        self, session: "Session", workspace: Workspace, candidates: Collection[Candidate]
    ) -> None:
        self._session, self._workspace = session, workspace
        read = [
            (process_input, candidate.business_date)
            for candidate in candidates
            for process_input in workspace.site.spec.processes[candidate.process].inputs.values()
        ]
        self._dataset_ids = _dataset_ids(
            session, workspace, {process_input.dataset for process_input, _ in read}
        )
        self._dated = self._ask_dated(read)
        self._latest = tags_until(
            session,
            [
                self._asked(process_input, day)
                for process_input, day in read
                if self._wanted(process_input, day) is None
            ],
        )
        self._runs = self._ask_runs(candidates)

    def versions(self, process_input: Input, business_date: date) -> Sequence[str]:
        wanted = self._wanted(process_input, business_date)
        if wanted is None:
            return self._latest.get(self._asked(process_input, business_date), ())
        tag = self._dated.get((self._dataset_ids[process_input.dataset], wanted))
        return () if tag is None else (tag,)

    def consumed(self, process: str, business_date: date) -> Sequence[Reads]:
        return self._runs.get((process, business_date), ())

    def _wanted(self, process_input: Input, day: date) -> date | None:
        return wanted_date(self._workspace, process_input, day)

    def _asked(self, process_input: Input, day: date) -> TagQuery:
        since = None if process_input.max_age is None else day - process_input.max_age
        count = process_input.count if process_input.mapping == "last" else 1
        return TagQuery(self._dataset_ids[process_input.dataset], day, since, count or 1)

    def _ask_dated(self, read: Iterable[tuple[Input, date]]) -> dict[tuple[int, date], str]:
        wanted: defaultdict[date, set[int]] = defaultdict(set)
        for process_input, day in read:
            wanted_day = self._wanted(process_input, day)
            if wanted_day is not None:
                wanted[wanted_day].add(self._dataset_ids[process_input.dataset])
        return {
            (dataset_id, day): tag
            for day, dataset_ids in wanted.items()
            for dataset_id, tag in tags_on(self._session, day, dataset_ids).items()
        }

    def _ask_runs(self, candidates: Iterable[Candidate]) -> dict[tuple[str, date], list[Reads]]:
        names_by_date: defaultdict[date, dict[str, str]] = defaultdict(dict)
        for candidate in candidates:
            names_by_date[candidate.business_date][_key(self._workspace, candidate.process)] = (
                candidate.process
            )
        return {
            (names[key], day): [
                (facet or {}).get("floe", {}).get("inputs") or {} for facet in facets
            ]
            for day, names in names_by_date.items()
            for key, facets in facets_of_runs(self._session, day, names).items()
        }


def _dataset_ids(
    session: "Session", workspace: Workspace, datasets: Iterable[str]
) -> dict[str, int]:
    named = {DatasetId(workspace.lake, name).full_name: name for name in datasets}
    return {
        named[full]: dataset_id for full, dataset_id in find_dataset_ids(session, named).items()
    }


def _key(workspace: Workspace, process: str) -> str:
    return floe_process(workspace.site.spec.name, process).key
