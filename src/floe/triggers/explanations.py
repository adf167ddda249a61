"""Explain the state of a process from its inputs, outputs and last run. Pure.

Every combination of facts has exactly one answer, so the order in which the catalog is read does
not matter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum


class InputState(StrEnum):
    """The state of an input for a date."""

    READY = "ready"
    STALE = "stale"
    """READY, but computed from a version that was retracted or rejected since."""
    ARRIVED = "arrived"
    """Delivered, but not read yet."""
    MISSING = "missing"
    REJECTED = "rejected"
    RETRACTED = "retracted"


class OutputState(StrEnum):
    """The state of an output of the last run."""

    GOOD = "good"
    RETRACTED = "retracted"
    REJECTED = "rejected"


class RunState(StrEnum):
    """The state of the last run."""

    NONE = "none"
    RUNNING = "running"
    DEAD = "dead"
    """Started and never ended, and its operating system process is gone."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"
    """Its parent run ended, but it never reported an end."""
    CANCELLED = "cancelled"


class ProcessState(StrEnum):
    """The state of a process for a date."""

    RUNS = "runs"
    DEAD = "dead"
    BLOCKED = "blocked"
    """A required input was rejected or retracted; somebody has to act."""
    WAITS = "waits"
    ARRIVED = "arrived"
    """A delivery has arrived that no run has read."""
    STALE = "stale"
    """An input was computed from a version that was retracted or rejected."""
    RETRACTED = "retracted"
    """It ran, but its output was retracted or rejected."""
    DONE = "done"
    FAILED = "failed"
    READY = "ready"


@dataclass(frozen=True)
class InputFacts:
    """The state of one input for a date."""

    dataset: str
    state: InputState
    business_date: date | None = None
    origin: str = ""
    """Where it comes from: `written by totals`, `delivered by Front Office`."""
    tag: str | None = None
    reason: str = ""
    actor: str = ""
    """Who rejected or retracted it."""
    source: str = ""
    """For a stale input: the upstream version that was retracted or rejected."""
    because: str = ""
    """For a missing input: why it was not written."""
    optional: bool = False
    newer: bool = False
    """Whether a newer delivery has arrived than the version in the catalog."""

    @property
    def is_available(self) -> bool:
        return self.state in (InputState.READY, InputState.STALE)


@dataclass(frozen=True)
class OutputFacts:
    """The state of one output of the last run."""

    dataset: str
    state: OutputState
    tag: str | None = None
    reason: str = ""
    actor: str = ""
    instead: str | None = None
    """The version that is READY instead."""


@dataclass(frozen=True)
class RunFacts:
    """The last run of a process for a date."""

    state: RunState = RunState.NONE
    run_id: str = ""
    reason: str = ""


@dataclass(frozen=True)
class ProcessFacts:
    """Everything that an explanation depends on."""

    process: str
    business_date: date
    inputs: Sequence[InputFacts] = ()
    outputs: Sequence[OutputFacts] = ()
    run: RunFacts = RunFacts()
    consumed: bool = False
    """Whether the newest run that did not fail has read the current input versions."""
    started_by_hand: bool = False

    def unavailable(self) -> list[InputFacts]:
        """Return the required inputs that have no READY version."""
        return [item for item in self.inputs if not item.optional and not item.is_available]


@dataclass(frozen=True)
class Answer:
    """The state of a process, with an explanation in one sentence."""

    state: ProcessState
    sentence: str
    clause: str
    """The same as a relative clause: `written by totals, which …`."""


def explain(facts: ProcessFacts) -> Answer:
    """Explain the state of a process for a date."""
    state = judge(facts)
    return Answer(state, _SENTENCES[state](facts), _CLAUSES[state](facts))


def judge(facts: ProcessFacts) -> ProcessState:
    """Return the state of a process: the first rule that applies."""
    return next(state for state, applies in _RULES if applies(facts))


def _output_withdrawn(facts: ProcessFacts) -> bool:
    return facts.consumed and any(output.state != OutputState.GOOD for output in facts.outputs)


_RULES: Sequence[tuple[ProcessState, Callable[[ProcessFacts], bool]]] = (
    (ProcessState.RUNS, lambda facts: facts.run.state == RunState.RUNNING),
    (ProcessState.DEAD, lambda facts: facts.run.state == RunState.DEAD),
    (
        ProcessState.BLOCKED,
        lambda facts: bool(_rejected(facts)),
    ),
    (ProcessState.WAITS, lambda facts: bool(_missing(facts))),
    (
        ProcessState.ARRIVED,
        lambda facts: bool(facts.unavailable()) or any(item.newer for item in facts.inputs),
    ),
    (
        ProcessState.STALE,
        lambda facts: any(item.state == InputState.STALE for item in facts.inputs),
    ),
    (ProcessState.RETRACTED, _output_withdrawn),
    (ProcessState.DONE, lambda facts: facts.consumed),
    (ProcessState.FAILED, lambda facts: facts.run.state in (RunState.FAILED, RunState.LOST)),
    (ProcessState.READY, lambda _: True),
)


def describe_input(facts: InputFacts) -> str:
    """Describe the state of an input and where it comes from."""
    when = f" of {facts.business_date}" if facts.business_date else ""
    origin = f", {facts.origin}" if facts.origin else ""
    named = f"{facts.dataset} {facts.tag}" if facts.tag else f"{facts.dataset}{when}"
    match facts.state:
        case InputState.REJECTED | InputState.RETRACTED:
            return f"{named}{origin}, was {facts.state}{_by(facts.actor)}{_why(facts.reason)}"
        case InputState.STALE:
            cause = f"{_by(facts.actor)}{_why(facts.reason)}"
            return f"{named}{origin}, was computed from {facts.source}{cause}"
        case InputState.ARRIVED:
            arrival = facts.reason or "has arrived and has not been read"
            return f"{facts.dataset}{when}{origin}, {arrival}"
        case InputState.MISSING:
            because = f", {facts.because}" if facts.because else ""
            return f"{facts.dataset}{when}{origin}{because}"
        case InputState.READY:
            return f"{named}{origin}, is READY"


def _by(actor: str) -> str:
    return f" by {actor}" if actor else ""


def _why(reason: str) -> str:
    """Return the first line of a reason, without final punctuation."""
    first = reason.strip().partition("\n")[0].rstrip(".; ")
    return f": {first}" if first else ""


def _join_inputs(inputs: Sequence[InputFacts]) -> str:
    return " and ".join(map(describe_input, inputs))


def _rejected(facts: ProcessFacts) -> list[InputFacts]:
    states = (InputState.REJECTED, InputState.RETRACTED)
    return [item for item in facts.unavailable() if item.state in states]


def _missing(facts: ProcessFacts) -> list[InputFacts]:
    return [item for item in facts.unavailable() if item.state == InputState.MISSING]


def _arrivals(inputs: Sequence[InputFacts]) -> str:
    """List unread deliveries; those without a reason of their own share one clause."""
    plain = [item for item in inputs if not item.newer and not item.reason]
    parts = [_arrival(item) for item in inputs if item not in plain]
    if len(plain) == 1:
        parts.append(describe_input(plain[0]))
    elif plain:
        names = [f"{item.dataset} of {item.business_date}, {item.origin}" for item in plain]
        several = f"{'; '.join(names[:-1])}, and {names[-1]}"
        parts.append(f"{several}, have arrived and have not been read")
    return "; ".join(parts)


def _arrival(facts: InputFacts) -> str:
    if not (facts.newer and facts.is_available):
        return describe_input(facts)
    after = f" after {facts.tag}" if facts.tag else ""
    return f"a new delivery of {facts.dataset}{after} has arrived and has not been read"


def _command(facts: ProcessFacts) -> str:
    return f"floe run {facts.process} --date {facts.business_date}"


def _runs(facts: ProcessFacts) -> str:
    return f"{facts.process} is running for {facts.business_date} (run {facts.run.run_id})."


def _dead(facts: ProcessFacts) -> str:
    return (
        f"{facts.process} stopped for {facts.business_date}: the process of run "
        f"{facts.run.run_id} is gone. Run: floe run --resume {facts.run.run_id}"
    )


def _blocked(facts: ProcessFacts) -> str:
    # Rejected and retracted inputs come first because somebody has to act on them.
    causes = [describe_input(item) for item in _rejected(facts)]
    parts = [_describe_missing(item, causes) for item in _missing(facts)]
    return f"{facts.process} cannot run for {facts.business_date}: {'; '.join(causes + parts)}."


def _describe_missing(facts: InputFacts, causes: Sequence[str]) -> str:
    """Report a missing input, without its reason if that is already among the causes."""
    known = any(cause in facts.because for cause in causes)
    return f"{describe_input(replace(facts, because='') if known else facts)}, is missing"


def _waits(facts: ProcessFacts) -> str:
    # Inputs that have arrived are left out: the run itself reads them.
    return f"{facts.process} waits for {'; for '.join(map(describe_input, _missing(facts)))}."


def _unread(facts: ProcessFacts) -> list[InputFacts]:
    return [item for item in facts.inputs if item.newer] or facts.unavailable()


def _arrived(facts: ProcessFacts) -> str:
    return (
        f"{facts.process} can run for {facts.business_date}: {_arrivals(_unread(facts))}. "
        f"Run: {_command(facts)}"
    )


def _stale_inputs(facts: ProcessFacts) -> list[InputFacts]:
    return [item for item in facts.inputs if item.state == InputState.STALE]


def _stale(facts: ProcessFacts) -> str:
    progress = "has run" if facts.consumed else "could run"
    return (
        f"{facts.process} {progress} for {facts.business_date}, but "
        f"{_join_inputs(_stale_inputs(facts))}. "
        "Recompute the input first."
    )


def _retracted(facts: ProcessFacts) -> str:
    parts = [
        f"{output.dataset} {output.tag} was {output.state}{_by(output.actor)}{_why(output.reason)}"
        + (f" ({output.instead} is READY instead)" if output.instead else "")
        for output in facts.outputs
        if output.state != OutputState.GOOD
    ]
    return (
        f"{facts.process} has run for {facts.business_date}, but its output "
        f"{' and '.join(parts)}. Run it again: {_command(facts)}"
    )


def _done(facts: ProcessFacts) -> str:
    return f"{facts.process} has run for {facts.business_date}; its inputs have not changed since."


def _failed(facts: ProcessFacts) -> str:
    word = "was lost" if facts.run.state == RunState.LOST else "failed"
    return (
        f"{facts.process} {word} for {facts.business_date}{_why(facts.run.reason)}. "
        f"Run: floe run --resume {facts.run.run_id}"
    )


def _ready(facts: ProcessFacts) -> str:
    starter = " and starts by schedule or by hand" if facts.started_by_hand else ""
    before = ""
    if facts.run.state == RunState.CANCELLED:
        before = f" Run {facts.run.run_id} was cancelled."
    return f"{facts.process} is ready for {facts.business_date}{starter}.{before}"


def _failed_clause(facts: ProcessFacts) -> str:
    word = "was lost" if facts.run.state == RunState.LOST else "failed"
    return f"which {word} in {facts.run.run_id}{_why(facts.run.reason)}"


_Wording = Callable[[ProcessFacts], str]
_SENTENCES: dict[ProcessState, _Wording] = {
    ProcessState.RUNS: _runs,
    ProcessState.DEAD: _dead,
    ProcessState.BLOCKED: _blocked,
    ProcessState.WAITS: _waits,
    ProcessState.ARRIVED: _arrived,
    ProcessState.STALE: _stale,
    ProcessState.RETRACTED: _retracted,
    ProcessState.DONE: _done,
    ProcessState.FAILED: _failed,
    ProcessState.READY: _ready,
}
_CLAUSES: dict[ProcessState, _Wording] = {
    ProcessState.RUNS: lambda facts: f"which is running (run {facts.run.run_id})",
    ProcessState.DEAD: lambda facts: f"whose run {facts.run.run_id} was killed",
    ProcessState.BLOCKED: lambda facts: f"which cannot run: {_join_inputs(_rejected(facts))}",
    ProcessState.WAITS: lambda facts: f"which waits for {describe_input(_missing(facts)[0])}",
    ProcessState.ARRIVED: lambda facts: (
        f"which has not run: {_arrivals(_unread(facts))} ({_command(facts)})"
    ),
    ProcessState.STALE: lambda facts: f"which has not run: {_join_inputs(_stale_inputs(facts))}",
    ProcessState.RETRACTED: lambda _: "whose output was retracted or rejected",
    ProcessState.DONE: lambda _: "which has run but has no READY version",
    ProcessState.FAILED: _failed_clause,
    ProcessState.READY: lambda facts: f"which has not run ({_command(facts)})",
}
