"""Say where a process stands for a date, from what is known of its inputs, outputs and runs. Pure.

Every combination of facts has exactly one answer, so nothing is left to the order in which the
catalog happens to be read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum


class InputState(StrEnum):
    """What there is of an input for a date."""

    READY = "ready"
    STALE = "stale"
    """READY, but made from a version that was retracted or rejected since."""
    ARRIVED = "arrived"
    """Delivered, and not read yet."""
    MISSING = "missing"
    REJECTED = "rejected"
    RETRACTED = "retracted"


class OutputState(StrEnum):
    """What became of an output that the last run made."""

    GOOD = "good"
    RETRACTED = "retracted"
    REJECTED = "rejected"


class RunState(StrEnum):
    """What became of the last run."""

    NONE = "none"
    RUNNING = "running"
    DEAD = "dead"
    """Never ended, and the process that ran it is gone."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"
    """Its parent ended and it never did."""
    CANCELLED = "cancelled"


class Standing(StrEnum):
    """Where a process stands."""

    RUNS = "runs"
    DEAD = "dead"
    BLOCKED = "blocked"
    """Somebody has to act: an input was rejected or retracted."""
    WAITS = "waits"
    ARRIVED = "arrived"
    """A delivery is there that no run has read."""
    STALE = "stale"
    """An input was made from a version that was taken back."""
    RETRACTED = "retracted"
    """It ran, and its output was taken back."""
    DONE = "done"
    FAILED = "failed"
    READY = "ready"


@dataclass(frozen=True)
class InputFacts:
    """An input of a process, as it is for a date."""

    dataset: str
    state: InputState
    business_date: date | None = None
    whose: str = ""
    """Who makes it: `written by totals`, `delivered by Front Office`."""
    tag: str | None = None
    reason: str = ""
    actor: str = ""
    """Who rejected or retracted it."""
    source: str = ""
    """Of a stale input: the version further up that was taken back."""
    because: str = ""
    """Of a missing input: why its writer has not made it."""
    optional: bool = False
    newer: bool = False
    """Whether a delivery has arrived after the version that the catalog knows."""

    @property
    def is_there(self) -> bool:
        return self.state in (InputState.READY, InputState.STALE)


@dataclass(frozen=True)
class OutputFacts:
    """An output, as the last run left it."""

    dataset: str
    state: OutputState
    tag: str | None = None
    reason: str = ""
    actor: str = ""
    instead: str | None = None
    """The version that is READY in its place."""


@dataclass(frozen=True)
class RunFacts:
    """The last run of a process for a date."""

    state: RunState = RunState.NONE
    run_id: str = ""
    reason: str = ""


@dataclass(frozen=True)
class ProcessFacts:
    """All that an answer depends on."""

    process: str
    business_date: date
    inputs: Sequence[InputFacts] = ()
    outputs: Sequence[OutputFacts] = ()
    run: RunFacts = RunFacts()
    consumed: bool = False
    """Whether the newest run that counts has read exactly what there is now."""
    started_by_hand: bool = False

    def lacking(self) -> list[InputFacts]:
        """Required inputs that have no version."""
        return [one for one in self.inputs if not one.optional and not one.is_there]


@dataclass(frozen=True)
class Answer:
    """Where a process stands, in one sentence and by state."""

    standing: Standing
    sentence: str
    clause: str
    """The same about a writer: `written by totals, which …`."""


def explain(facts: ProcessFacts) -> Answer:
    """Say where a process stands for a date."""
    standing = judge(facts)
    return Answer(standing, _SENTENCES[standing](facts), _CLAUSES[standing](facts))


def judge(facts: ProcessFacts) -> Standing:
    """Return the state of a process; the first rule that applies wins."""
    return next(standing for standing, applies in _RULES if applies(facts))


def _was_taken_back(facts: ProcessFacts) -> bool:
    return facts.consumed and any(one.state != OutputState.GOOD for one in facts.outputs)


_RULES: Sequence[tuple[Standing, Callable[[ProcessFacts], bool]]] = (
    (Standing.RUNS, lambda facts: facts.run.state == RunState.RUNNING),
    (Standing.DEAD, lambda facts: facts.run.state == RunState.DEAD),
    (
        Standing.BLOCKED,
        lambda facts: bool(_refused(facts)),
    ),
    (Standing.WAITS, lambda facts: bool(_missing(facts))),
    (
        Standing.ARRIVED,
        lambda facts: bool(facts.lacking()) or any(one.newer for one in facts.inputs),
    ),
    (
        Standing.STALE,
        lambda facts: any(one.state == InputState.STALE for one in facts.inputs),
    ),
    (Standing.RETRACTED, _was_taken_back),
    (Standing.DONE, lambda facts: facts.consumed),
    (Standing.FAILED, lambda facts: facts.run.state in (RunState.FAILED, RunState.LOST)),
    (Standing.READY, lambda _: True),
)


def describe_input(one: InputFacts) -> str:
    """Say of an input what there is of it, and who makes it."""
    when = f" of {one.business_date}" if one.business_date else ""
    whose = f", {one.whose}" if one.whose else ""
    named = f"{one.dataset} {one.tag}" if one.tag else f"{one.dataset}{when}"
    match one.state:
        case InputState.REJECTED | InputState.RETRACTED:
            return f"{named}{whose}, was {one.state}{_by(one.actor)}{_why(one.reason)}"
        case InputState.STALE:
            taken = f"{_by(one.actor)}{_why(one.reason)}"
            return f"{named}{whose}, was made from {one.source}{taken}"
        case InputState.ARRIVED:
            there = one.reason or "has arrived and has not been read"
            return f"{one.dataset}{when}{whose}, {there}"
        case InputState.MISSING:
            because = f", {one.because}" if one.because else ""
            return f"{one.dataset}{when}{whose}{because}"
        case InputState.READY:
            return f"{named}{whose}, is READY"


def _by(actor: str) -> str:
    return f" by {actor}" if actor else ""


def _why(reason: str) -> str:
    """Return a reason for use in a sentence: its first line, without the end of a sentence."""
    first = reason.strip().partition("\n")[0].rstrip(".; ")
    return f": {first}" if first else ""


def _listed(inputs: Sequence[InputFacts]) -> str:
    return " and ".join(map(describe_input, inputs))


def _refused(facts: ProcessFacts) -> list[InputFacts]:
    states = (InputState.REJECTED, InputState.RETRACTED)
    return [one for one in facts.lacking() if one.state in states]


def _missing(facts: ProcessFacts) -> list[InputFacts]:
    return [one for one in facts.lacking() if one.state == InputState.MISSING]


def _arrivals(inputs: Sequence[InputFacts]) -> str:
    """Say which deliveries no run has read; those of which there is no more to say together."""
    plain = [one for one in inputs if not one.newer and not one.reason]
    parts = [_arrival(one) for one in inputs if one not in plain]
    if len(plain) == 1:
        parts.append(describe_input(plain[0]))
    elif plain:
        names = [f"{one.dataset} of {one.business_date}, {one.whose}" for one in plain]
        told = f"{'; '.join(names[:-1])}, and {names[-1]}"
        parts.append(f"{told}, have arrived and have not been read")
    return "; ".join(parts)


def _arrival(one: InputFacts) -> str:
    if not (one.newer and one.is_there):
        return describe_input(one)
    after = f" after {one.tag}" if one.tag else ""
    return f"a new delivery of {one.dataset}{after} has arrived and has not been read"


def _command(facts: ProcessFacts) -> str:
    return f"floe run {facts.process} --date {facts.business_date}"


def _runs(facts: ProcessFacts) -> str:
    return f"{facts.process} runs for {facts.business_date}, as {facts.run.run_id}."


def _dead(facts: ProcessFacts) -> str:
    return (
        f"{facts.process} does not run for {facts.business_date} any more: the process of run "
        f"{facts.run.run_id} is gone. Run: floe run --resume {facts.run.run_id}"
    )


def _blocked(facts: ProcessFacts) -> str:
    # What was refused comes first: it is what somebody has to act on.
    causes = [describe_input(one) for one in _refused(facts)]
    parts = [_missing_too(one, causes) for one in _missing(facts)]
    return f"{facts.process} cannot run for {facts.business_date}: {'; '.join(causes + parts)}."


def _missing_too(one: InputFacts, causes: Sequence[str]) -> str:
    """Say that an input is missing, and why unless that was said before."""
    known = any(cause in one.because for cause in causes)
    return f"{describe_input(replace(one, because='') if known else one)}, is missing"


def _waits(facts: ProcessFacts) -> str:
    # What has arrived is read by the run itself: nobody has to wait for it.
    return f"{facts.process} waits for {'; for '.join(map(describe_input, _missing(facts)))}."


def _unread(facts: ProcessFacts) -> list[InputFacts]:
    return [one for one in facts.inputs if one.newer] or facts.lacking()


def _arrived(facts: ProcessFacts) -> str:
    return (
        f"{facts.process} can run for {facts.business_date}: {_arrivals(_unread(facts))}. "
        f"Run: {_command(facts)}"
    )


def _stale_inputs(facts: ProcessFacts) -> list[InputFacts]:
    return [one for one in facts.inputs if one.state == InputState.STALE]


def _stale(facts: ProcessFacts) -> str:
    begun = "has run" if facts.consumed else "could run"
    return (
        f"{facts.process} {begun} for {facts.business_date}, but {_listed(_stale_inputs(facts))}. "
        "Make the input again first."
    )


def _retracted(facts: ProcessFacts) -> str:
    parts = [
        f"{one.dataset} {one.tag} was {one.state}{_by(one.actor)}{_why(one.reason)}"
        + (f" ({one.instead} is READY in its place)" if one.instead else "")
        for one in facts.outputs
        if one.state != OutputState.GOOD
    ]
    return (
        f"{facts.process} has run for {facts.business_date}, but its output "
        f"{' and '.join(parts)}. Run it again: {_command(facts)}"
    )


def _done(facts: ProcessFacts) -> str:
    return f"{facts.process} has run for {facts.business_date} and has read everything there is."


def _failed(facts: ProcessFacts) -> str:
    word = "was lost" if facts.run.state == RunState.LOST else "failed"
    return (
        f"{facts.process} {word} for {facts.business_date}{_why(facts.run.reason)}. "
        f"Run: floe run --resume {facts.run.run_id}"
    )


def _ready(facts: ProcessFacts) -> str:
    starter = ", and a schedule or a person starts it" if facts.started_by_hand else ""
    before = ""
    if facts.run.state == RunState.CANCELLED:
        before = f" Run {facts.run.run_id} was cancelled."
    return f"{facts.process} is ready for {facts.business_date}{starter}.{before}"


def _failed_clause(facts: ProcessFacts) -> str:
    word = "was lost" if facts.run.state == RunState.LOST else "failed"
    return f"which {word} in {facts.run.run_id}{_why(facts.run.reason)}"


_Wording = Callable[[ProcessFacts], str]
_SENTENCES: dict[Standing, _Wording] = {
    Standing.RUNS: _runs,
    Standing.DEAD: _dead,
    Standing.BLOCKED: _blocked,
    Standing.WAITS: _waits,
    Standing.ARRIVED: _arrived,
    Standing.STALE: _stale,
    Standing.RETRACTED: _retracted,
    Standing.DONE: _done,
    Standing.FAILED: _failed,
    Standing.READY: _ready,
}
_CLAUSES: dict[Standing, _Wording] = {
    Standing.RUNS: lambda facts: f"which runs as {facts.run.run_id}",
    Standing.DEAD: lambda facts: f"whose run {facts.run.run_id} was killed",
    Standing.BLOCKED: lambda facts: f"which cannot run: {_listed(_refused(facts))}",
    Standing.WAITS: lambda facts: f"which waits for {describe_input(_missing(facts)[0])}",
    Standing.ARRIVED: lambda facts: (
        f"which has not run: {_arrivals(_unread(facts))} ({_command(facts)})"
    ),
    Standing.STALE: lambda facts: f"which has not run: {_listed(_stale_inputs(facts))}",
    Standing.RETRACTED: lambda _: "whose output was taken back",
    Standing.DONE: lambda _: "which has run and left no READY version",
    Standing.FAILED: _failed_clause,
    Standing.READY: lambda facts: f"which has not run ({_command(facts)})",
}
