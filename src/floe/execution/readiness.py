"""Why a process does or does not run for a date: what it waits for, and whose that is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from floe.catalog.processes import find_process
from floe.catalog.runs import FAILED, STARTED, SUCCESS, list_runs
from floe.execution.planning import process_spec, versions_for, wanted_date, whose, writers_of
from floe.execution.workspace import Workspace
from floe.spec.identity import default_business_date, floe_process
from floe.spec.processes import Input
from floe.triggers import Decision, Done, Lack, Waits, decide
from floe.triggers.deciding import Reads

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from floe.catalog.tables import ProcessRun

READY, WAITS, RUNS, DONE, FAILS = "ready", "waits", "runs", "done", "failed"
# Several runs of a date are usual, many are not; of those the newest tell.
MOST_RUNS = 50
# Whoever reads a sentence follows a few steps back, not twenty.
DEEPEST = 5


@dataclass(frozen=True)
class Missing:
    """A dataset that a process waits for."""

    dataset: str
    business_date: date | None
    whose: str
    because: str = ""
    """Why whoever writes it has not done so, if that is known."""


@dataclass(frozen=True)
class Reason:
    """Where a process stands for a date, in one sentence and in its parts."""

    process: str
    business_date: date
    state: str
    sentence: str
    waits_for: Sequence[Missing] = ()


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
    spec = process_spec(workspace, process)
    day = business_date or default_business_date(workspace.site.spec.timezone)
    with workspace.catalog.reading() as session:
        state = CatalogState(session, workspace)
        decision = decide(process, spec, day, state)
        return _Teller(workspace, state).tell(decision)


class _Teller:
    """Puts decisions into words."""

    def __init__(self, workspace: Workspace, state: CatalogState) -> None:
        self._workspace, self._state = workspace, state

    def tell(self, decision: Decision) -> Reason:
        process, day = decision.process, decision.business_date
        last = next(iter(self._state.runs(process, day)), None)
        if last is not None and last.status == STARTED:
            text = f"{process} runs for {day}, as {last.run_uuid}."
            return Reason(process, day, RUNS, text)
        if isinstance(decision, Waits):
            missing = [self._missing(lack, day, 1) for lack in decision.lacks]
            text = f"{process} waits for {' and for '.join(map(_told, missing))}."
            return Reason(process, day, WAITS, text, missing)
        if isinstance(decision, Done):
            text = f"{process} has run for {day} with all that there is."
            return Reason(process, day, DONE, text)
        if last is not None and last.status == FAILED:
            text = f"{process} failed for {day}: floe run --resume {last.run_uuid}"
            return Reason(process, day, FAILS, text)
        return Reason(process, day, READY, f"{process} is ready for {day}{self._starter(process)}.")

    def _starter(self, process: str) -> str:
        if process_spec(self._workspace, process).trigger == "process":
            return ", and a schedule or a person starts it"
        return ""

    def _missing(self, lack: Lack, day: date, depth: int) -> Missing:
        dataset = lack.input.dataset
        wanted = wanted_date(self._workspace, lack.input, day)
        because = self._because(dataset, wanted or day, depth)
        return Missing(dataset, wanted, whose(self._workspace, dataset), because)

    def _because(self, dataset: str, day: date, depth: int) -> str:
        """Say of the process that is to write a dataset why it has not."""
        writers = writers_of(self._workspace, dataset)
        if not writers or depth > DEEPEST:
            return ""
        writer = writers[0]
        last = next(iter(self._state.runs(writer, day)), None)
        if last is not None and last.status == STARTED:
            return "which runs"
        if last is not None and last.status == FAILED:
            return f"which failed in {last.run_uuid}"
        decision = decide(writer, process_spec(self._workspace, writer), day, self._state)
        if isinstance(decision, Waits):
            return f"which waits for {_told(self._missing(decision.lacks[0], day, depth + 1))}"
        return "which has not run"


def _told(missing: Missing) -> str:
    when = f" of {missing.business_date}" if missing.business_date else ""
    because = f", {missing.because}" if missing.because else ""
    return f"{missing.dataset}{when}, {missing.whose}{because}"
