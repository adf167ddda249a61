"""Why a process does or does not run for a date, and who has to act.

This module gathers the facts from the catalog and the landing folders; `triggers.explaining`
decides on them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from floe.catalog.datasets import get_dataset
from floe.catalog.derivation import find_taken_back
from floe.catalog.leases import is_held, read_lease
from floe.catalog.processes import find_process
from floe.catalog.retention import describe_state, ready_of_same_key
from floe.catalog.runs import (
    CANCELLED,
    LOST,
    STARTED,
    SUCCESS,
    list_runs,
    reason_of_run,
)
from floe.catalog.versions import (
    REJECTED,
    RETRACTED,
    WRITTEN,
    list_of_run,
    newest_of_date,
    newest_until,
)
from floe.execution.holders import is_dead, is_same_process
from floe.execution.planning import process_spec, versions_for, wanted_date, whose, writers_of
from floe.execution.receiving import find_unread
from floe.execution.runner import run_lease_name
from floe.execution.versions.arrivals import is_delivered
from floe.execution.workspace import Workspace
from floe.spec.identity import default_business_date, floe_process
from floe.spec.processes import Input
from floe.triggers import Done, decide
from floe.triggers.deciding import Reads
from floe.triggers.explaining import (
    Answer,
    InputFacts,
    InputState,
    OutputFacts,
    OutputState,
    ProcessFacts,
    RunFacts,
    RunState,
    Standing,
    explain,
)

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from floe.catalog.tables import DatasetVersion, ProcessRun

# Several runs of a date are usual, many are not: the newest ones decide.
MOST_RUNS = 50
# A reader follows a reason a few steps upstream, not twenty.
DEEPEST = 5


@dataclass(frozen=True)
class Reason:
    """Where a process stands for a date: the answer, and the facts that it follows from."""

    facts: ProcessFacts
    answer: Answer

    @property
    def state(self) -> Standing:
        return self.answer.standing

    @property
    def sentence(self) -> str:
        return self.answer.sentence


class CatalogState:
    """Versions and runs as the catalog has them."""

    def __init__(self, session: "Session", workspace: Workspace) -> None:
        self._session, self._workspace = session, workspace

    def versions(self, one: Input, business_date: date) -> list[str]:
        found = versions_for(self._session, self._workspace, one, business_date)
        return [version.version_tag for version in found]

    def consumed(self, process: str, business_date: date) -> Iterator[Reads]:
        for run in self.runs(process, business_date):
            if run.status in (SUCCESS, STARTED):
                yield (run.facets_json or {}).get("floe", {}).get("inputs") or {}

    def runs(self, process: str, business_date: date) -> "Sequence[ProcessRun]":
        """The runs of a process for a date, the newest first."""
        key = floe_process(self._workspace.site.spec.name, process).key
        number = find_process(self._session, key).process_id
        return list_runs(
            self._session, process_id=number, business_date=business_date, limit=MOST_RUNS
        )


def explain_process(
    workspace: Workspace, process: str, business_date: date | None = None
) -> Reason:
    """Say where a process stands for a date; without one, for today's business date."""
    day = business_date or default_business_date(workspace.site.spec.timezone)
    with workspace.catalog.reading() as session:
        facts = _Gatherer(session, workspace).process(process, day, 1)
    return Reason(facts, explain(facts))


class _Gatherer:
    """Gathers the facts about a process, and about the writers of what it lacks."""

    def __init__(self, session: "Session", workspace: Workspace) -> None:
        self._session, self._workspace = session, workspace
        self._state = CatalogState(session, workspace)

    def process(self, process: str, day: date, depth: int) -> ProcessFacts:
        spec = process_spec(self._workspace, process)
        runs = self._state.runs(process, day)
        decision = decide(process, spec, day, self._state)
        counted = next((run for run in runs if run.status in (SUCCESS, STARTED)), None)
        return ProcessFacts(
            process,
            day,
            inputs=[self._input(one, day, depth) for one in spec.inputs.values()],
            outputs=self._outputs(counted) if counted is not None else (),
            run=self._run(process, day, runs[0]) if runs else RunFacts(),
            consumed=isinstance(decision, Done),
            started_by_hand=spec.trigger == "process",
        )

    def _run(self, process: str, day: date, run: "ProcessRun") -> RunFacts:
        if run.status == STARTED:
            dead = self._is_dead(process, day, run)
            return RunFacts(RunState.DEAD if dead else RunState.RUNNING, run.run_uuid)
        states = {
            SUCCESS: RunState.SUCCEEDED,
            CANCELLED: RunState.CANCELLED,
            LOST: RunState.LOST,
        }
        state = states.get(run.status, RunState.FAILED)
        reason = reason_of_run(run.status, run.facets_json, run.parent_run_uuid)
        return RunFacts(state, run.run_uuid, reason or "")

    def _is_dead(self, process: str, day: date, run: "ProcessRun") -> bool:
        """Tell whether a run that never ended is gone: its process, or the lease that it held.

        A run holds its lease from before it is reported until after its end is, on any host.
        """
        holder = str(((run.facets_json or {}).get("floe") or {}).get("holder", ""))
        if not holder:
            return False
        if is_dead(holder):
            return True
        names = [
            run_lease_name(self._workspace, process, key)
            for key in dict.fromkeys((run.partition_key or day, day, None))
        ]
        leases = [read_lease(self._session, name) for name in names]
        return not any(
            lease is not None and is_held(lease) and is_same_process(lease.holder, holder)
            for lease in leases
        )

    def _outputs(self, run: "ProcessRun") -> list[OutputFacts]:
        return [self._output(version) for version in list_of_run(self._session, run.run_uuid)]

    def _output(self, version: "DatasetVersion") -> OutputFacts:
        name = get_dataset(self._session, version.dataset_id).name
        instead = ready_of_same_key(self._session, version)
        replaced = instead is not None and instead.dataset_version_id > version.dataset_version_id
        if version.state not in (RETRACTED, REJECTED) or replaced:
            return OutputFacts(name, OutputState.GOOD, version.version_tag)
        event = describe_state(self._session, version)
        return OutputFacts(
            name,
            OutputState(version.state.lower()),
            version.version_tag,
            reason=(event and event.reason) or "",
            actor=(event and event.actor) or "",
            instead=None if instead is None else instead.version_tag,
        )

    def _input(self, one: Input, day: date, depth: int) -> InputFacts:
        wanted = wanted_date(self._workspace, one, day)
        base = InputFacts(
            one.dataset,
            InputState.MISSING,
            wanted,
            whose(self._workspace, one.dataset),
            optional=one.optional,
        )
        newest = self._newest(one, wanted, day)
        delivered = is_delivered(self._workspace, one.dataset)
        unread = None
        if delivered:
            unread = find_unread(self._workspace, one.dataset, wanted or day, newest)
        versions = versions_for(self._session, self._workspace, one, day)
        # A run refuses a rejected delivery even where an older version is READY.
        refused = delivered and newest is not None and newest.state == REJECTED
        if versions and not refused:
            return self._present(base, versions, newer=unread is not None and unread.replaces)
        if unread is not None and unread.is_there:
            return replace(base, state=InputState.ARRIVED, reason=unread.reason)
        if newest is not None and newest.state in (REJECTED, RETRACTED):
            return self._taken_back(base, newest)
        if newest is not None and newest.state == WRITTEN:
            return replace(base, state=InputState.ARRIVED, tag=newest.version_tag)
        because = unread.reason if unread is not None else ""
        return replace(
            base,
            state=InputState.MISSING,
            because=because or self._because(one.dataset, wanted or day, depth),
        )

    def _newest(self, one: Input, wanted: date | None, day: date) -> "DatasetVersion | None":
        number = self._workspace.dataset_id(one.dataset, self._session)
        if wanted is not None:
            return newest_of_date(self._session, number, wanted)
        since = None if one.max_age is None else day - one.max_age
        return newest_until(self._session, number, day, since=since)

    def _present(
        self, base: InputFacts, versions: "Sequence[DatasetVersion]", *, newer: bool
    ) -> InputFacts:
        for version in versions:
            taken = find_taken_back(self._session, version.dataset_version_id)
            if taken is not None:
                return replace(
                    base,
                    state=InputState.STALE,
                    tag=version.version_tag,
                    source=f"{taken.name} {taken.tag}, which was {taken.state.lower()}",
                    reason=(taken.event and taken.event.reason) or "",
                    actor=(taken.event and taken.event.actor) or "",
                    newer=newer,
                )
        return replace(base, state=InputState.READY, tag=versions[0].version_tag, newer=newer)

    def _taken_back(self, base: InputFacts, version: "DatasetVersion") -> InputFacts:
        event = describe_state(self._session, version)
        noted = str((version.metadata_json or {}).get("reason", ""))
        return replace(
            base,
            state=InputState(version.state.lower()),
            tag=version.version_tag,
            reason=(event and event.reason) or noted,
            actor=(event and event.actor) or "",
        )

    def _because(self, dataset: str, day: date, depth: int) -> str:
        """Say of the process that writes a dataset why it has not."""
        writers = writers_of(self._workspace, dataset)
        if not writers or depth > DEEPEST:
            return ""
        return explain(self.process(writers[0], day, depth + 1)).clause
