"""What is told of a run, before it has a form: who ran, what was read and made, how it ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal

from floe.catalog.schemas import Column
from floe.spec.identity import ProcessId

Kind = Literal["START", "COMPLETE", "FAIL", "ABORT"]


@dataclass(frozen=True)
class Verdict:
    """How a check came out."""

    name: str
    passed: bool
    strict: bool
    message: str = ""


@dataclass(frozen=True)
class Read:
    """A dataset that was read; the tag is empty when nobody said which version."""

    dataset: str
    tag: str = ""
    verdicts: Sequence[Verdict] = ()


@dataclass(frozen=True)
class Written:
    """A version that was made; without a tag the catalog gives it one."""

    dataset: str
    tag: str = ""
    rows: int | None = None
    size: int | None = None
    columns: Sequence[Column] = ()
    partition: str | None = None
    verdicts: Sequence[Verdict] = ()
    rejected: str = ""
    """Why it is no good, though it is there already."""


@dataclass(frozen=True)
class Failure:
    """Why a run failed."""

    message: str
    trace: str = ""


@dataclass(frozen=True)
class Observed:
    """A run that was observed: what is the same in all that is told of it."""

    run_id: str
    process: ProcessId
    dagster_run: str
    started_at: datetime
    business_date: date
    job_type: str
    partition: str | None = None
    step: str | None = None
    """None is the Dagster run itself."""
    attempt: int = 1
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """That a run began, or how it ended."""

    place: int
    """Where in the event log of its Dagster run this was known."""
    kind: Kind
    at: datetime
    run: Observed
    reads: Sequence[Read] = ()
    written: Sequence[Written] = ()
    failure: Failure | None = None
    sql: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
