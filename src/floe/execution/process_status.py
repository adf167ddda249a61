"""Why a process does or does not run for a date, and who has to act.

This module gathers the facts from the catalog and the landing folders; `triggers.explanations`
draws the conclusion.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from floe.catalog.datasets import get_dataset
from floe.catalog.impact import find_withdrawn_input
from floe.catalog.leases import is_held, read_lease
from floe.catalog.processes import find_process
from floe.catalog.runs import (
    CANCELLED,
    LOST,
    STARTED,
    SUCCESS,
    list_runs,
    reason_of_run,
)
from floe.catalog.stable_names import ready_of_same_key
from floe.catalog.version_queries import (
    describe_state,
    list_run_versions,
    newest_of_date,
    newest_until,
)
from floe.catalog.versions import REJECTED, RETRACTED, WRITTEN
from floe.execution.input_deliveries import find_unread
from floe.execution.os_processes import is_dead, is_same_process
from floe.execution.planning import (
    describe_origin,
    process_spec,
    versions_for,
    wanted_date,
    writers_of,
)
from floe.execution.runner import run_lease_name
from floe.execution.versions.arrivals import is_delivered
from floe.execution.workspace import Workspace
from floe.spec.identity import default_business_date, floe_process
from floe.spec.processes import Input
from floe.triggers import Done, decide
from floe.triggers.decisions import Reads
from floe.triggers.explanations import (
    Answer,
    InputFacts,
    InputState,
    OutputFacts,
    OutputState,
    ProcessFacts,
    ProcessState,
    RunFacts,
    RunState,
    explain,
)

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from floe.catalog.tables import DatasetVersion, ProcessRun

# A date rarely has more runs than this; only the newest ones matter.
MAX_RUNS = 50
# Longer chains of upstream causes would not be readable.
MAX_DEPTH = 5


@dataclass(frozen=True)
class Explanation:
    """The state of a process for a date, and the facts it follows from."""

    facts: ProcessFacts
    answer: Answer

    @property
    def state(self) -> ProcessState:
        return self.answer.state

    @property
    def sentence(self) -> str:
        return self.answer.sentence


class CatalogState:
    """Versions and runs, read from the catalog."""

    def __init__(self, session: "Session", workspace: Workspace) -> None:
        self._session, self._workspace = session, workspace

    def versions(self, process_input: Input, business_date: date) -> list[str]:
        versions = versions_for(self._session, self._workspace, process_input, business_date)
        return [version.version_tag for version in versions]

    def consumed(self, process: str, business_date: date) -> Iterator[Reads]:
        for run in self.runs(process, business_date):
            if run.status in (SUCCESS, STARTED):
                yield (run.facets_json or {}).get("floe", {}).get("inputs") or {}

    def runs(self, process: str, business_date: date) -> "Sequence[ProcessRun]":
        """Return the runs of a process for a date, newest first."""
        key = floe_process(self._workspace.site.spec.name, process).key
        process_id = find_process(self._session, key).process_id
        return list_runs(
            self._session, process_id=process_id, business_date=business_date, limit=MAX_RUNS
        )


def explain_process(
    workspace: Workspace, process: str, business_date: date | None = None
) -> Explanation:
    """Explain the state of a process for a date; default: today's business date."""
    day = business_date or default_business_date(workspace.site.spec.timezone)
    with workspace.catalog.reading() as session:
        facts = _Gatherer(session, workspace).process(process, day, 1)
    return Explanation(facts, explain(facts))


class _Gatherer:
    """Gathers the facts about a process, and about the writers of its missing inputs."""

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
            inputs=[
                self._input(process_input, day, depth) for process_input in spec.inputs.values()
            ],
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
        """Tell whether an unfinished run is dead: its process or its lease is gone.

        A run on any host holds its lease from before its start is reported until after its end.
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
        return [self._output(version) for version in list_run_versions(self._session, run.run_uuid)]

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

    def _input(self, process_input: Input, day: date, depth: int) -> InputFacts:
        wanted = wanted_date(self._workspace, process_input, day)
        base = InputFacts(
            process_input.dataset,
            InputState.MISSING,
            wanted,
            describe_origin(self._workspace, process_input.dataset),
            optional=process_input.optional,
        )
        newest = self._newest(process_input, wanted, day)
        delivered = is_delivered(self._workspace, process_input.dataset)
        unread = None
        if delivered:
            unread = find_unread(self._workspace, process_input.dataset, wanted or day, newest)
        versions = versions_for(self._session, self._workspace, process_input, day)
        # A run refuses a rejected delivery even where an older version is READY.
        refused = delivered and newest is not None and newest.state == REJECTED
        if versions and not refused:
            return self._present(base, versions, newer=unread is not None and unread.replaces)
        if unread is not None and unread.is_there:
            return replace(base, state=InputState.ARRIVED, reason=unread.reason)
        if newest is not None and newest.state in (REJECTED, RETRACTED):
            return self._withdrawn(base, newest)
        if newest is not None and newest.state == WRITTEN:
            return replace(base, state=InputState.ARRIVED, tag=newest.version_tag)
        because = unread.reason if unread is not None else ""
        return replace(
            base,
            state=InputState.MISSING,
            because=because or self._upstream_cause(process_input.dataset, wanted or day, depth),
        )

    def _newest(
        self, process_input: Input, wanted: date | None, day: date
    ) -> "DatasetVersion | None":
        dataset_id = self._workspace.dataset_id(process_input.dataset, self._session)
        if wanted is not None:
            return newest_of_date(self._session, dataset_id, wanted)
        since = None if process_input.max_age is None else day - process_input.max_age
        return newest_until(self._session, dataset_id, day, since=since)

    def _present(
        self, base: InputFacts, versions: "Sequence[DatasetVersion]", *, newer: bool
    ) -> InputFacts:
        for version in versions:
            taken = find_withdrawn_input(self._session, version.dataset_version_id)
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

    def _withdrawn(self, base: InputFacts, version: "DatasetVersion") -> InputFacts:
        event = describe_state(self._session, version)
        noted = str((version.metadata_json or {}).get("reason", ""))
        return replace(
            base,
            state=InputState(version.state.lower()),
            tag=version.version_tag,
            reason=(event and event.reason) or noted,
            actor=(event and event.actor) or "",
        )

    def _upstream_cause(self, dataset: str, day: date, depth: int) -> str:
        """Explain why the process that writes a dataset has not done so."""
        writers = writers_of(self._workspace, dataset)
        if not writers or depth > MAX_DEPTH:
            return ""
        return explain(self.process(writers[0], day, depth + 1)).clause
