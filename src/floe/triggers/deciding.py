"""Decide whether a process is to start for a date, and if not, why. Pure.

A process starts once for the versions that it would read. Its key names them, so that whoever
decides twice, because it was stopped in between, starts it once.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from floe.spec import ProcessSpec
from floe.spec.processes import Input
from floe.triggers.subscriptions import Concern

# The tags that a run reads under each alias.
Reads = Mapping[str, Sequence[str]]


class State(Protocol):
    """What is known of versions and runs."""

    def versions(self, one: Input, business_date: date) -> Sequence[str]:
        """The tags of what an input would read now; none when nothing is READY."""

    def consumed(self, process: str, business_date: date) -> Iterable[Reads]:
        """What runs of the process for this date have read, the newest first, failed ones not."""


@dataclass(frozen=True)
class Lack:
    """An input that has no version."""

    alias: str
    input: Input


@dataclass(frozen=True)
class Ready:
    """A process that is to start."""

    process: str
    business_date: date
    reads: Reads
    again: int = 0
    """How often these versions were read before others came that were taken back since."""

    @property
    def run_key(self) -> str:
        """The same for the same versions, whoever asks and however often."""
        read = [f"{alias}={','.join(tags)}" for alias, tags in sorted(self.reads.items())]
        again = [f"again {self.again}"] if self.again else []
        told = "\n".join((self.process, self.business_date.isoformat(), *read, *again))
        digest = hashlib.sha256(told.encode()).hexdigest()[:16]
        return f"{self.process}/{self.business_date}/{digest}"


@dataclass(frozen=True)
class Waits:
    """A process that cannot start yet."""

    process: str
    business_date: date
    lacks: Sequence[Lack]


@dataclass(frozen=True)
class Done:
    """A process that has read all that there is."""

    process: str
    business_date: date
    reads: Reads


Decision = Ready | Waits | Done


def decide(process: str, spec: ProcessSpec, business_date: date, state: State) -> Decision:
    """Say whether a process is to start for a date."""
    reads = {alias: tuple(state.versions(one, business_date)) for alias, one in spec.inputs.items()}
    lacks = [
        Lack(alias, one)
        for alias, one in spec.inputs.items()
        if not reads[alias] and not one.optional
    ]
    if lacks:
        return Waits(process, business_date, lacks)
    # What does not start a process is no reason to start it again.
    counts = {alias: reads[alias] for alias, one in spec.inputs.items() if one.triggers}
    same = [
        all(tuple(before.get(alias, ())) == tags for alias, tags in counts.items())
        for before in state.consumed(process, business_date)
    ]
    # What was made last counts: of what an older run made, readers see nothing any more.
    if same and same[0]:
        return Done(process, business_date, reads)
    return Ready(process, business_date, counts, again=sum(same))


def decide_all(
    concerns: Iterable[Concern], processes: Mapping[str, ProcessSpec], state: State
) -> list[Decision]:
    """Decide on each concern once, in the order in which they came up."""
    return [
        decide(one.process, processes[one.process], one.business_date, state)
        for one in dict.fromkeys(concerns)
    ]
