"""Processes and runs, as the API shows them."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from msgspec import Struct


class ProcessItem(Struct):
    """A process, as a list shows it."""

    process_id: int
    process_key: str
    name: str | None
    description: str | None
    technology: str | None
    team: str | None
    owner_email: str | None
    trigger_mode: str
    status: str


class ProcessPage(Struct):
    """A page of processes by key."""

    items: Sequence[ProcessItem]
    next: str | None


class RunItem(Struct):
    """A run, as a list shows it."""

    run_id: int
    run_uuid: str
    process_id: int
    process_key: str
    business_date: date | None
    partition_key: str | None
    start_ts: datetime | None
    end_ts: datetime | None
    status: str
    attempt: int
    parent_run_uuid: str | None
    historical: bool


class RunPage(Struct):
    """A page of runs, the newest first."""

    items: Sequence[RunItem]
    next: str | None


class ProcessDetail(ProcessItem):
    """A process with what it reads and writes, and its newest runs."""

    declaration_json: Any
    created_at: datetime
    updated_at: datetime | None
    sla: str | None = None
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    runs: Sequence[RunItem] = ()


class InputItem(Struct):
    """What a run read. The tag is empty when it did not say which version."""

    dataset_id: int
    full_name: str
    version_tag: str
    dataset_version_id: int | None
    business_date: date | None
    state: str | None


class OutputItem(Struct):
    """A version that a run made."""

    dataset_version_id: int
    dataset_id: int
    full_name: str
    version_tag: str
    business_date: date | None
    state: str
    row_count: int | None
    size_bytes: int | None
    produced_at: datetime


class StepItem(Struct):
    """A named part of a run."""

    step_name: str
    step_order: int
    depends_on_json: Any
    status: str
    start_ts: datetime | None
    end_ts: datetime | None
    row_count: int | None
    detail_json: Any


class RelatedRunItem(Struct):
    """A run that started another, or was started by it."""

    run_uuid: str
    process_key: str
    business_date: date | None
    partition_key: str | None
    status: str
    start_ts: datetime | None
    end_ts: datetime | None
    reason: str | None


class CheckOutcomeItem(Struct):
    """The verdict of a check on what a run made, with samples of rows that failed."""

    full_name: str
    version_tag: str | None
    name: str
    severity: str
    status: str
    failed_rows: int | None
    message: str | None
    samples: Sequence[Any]


class RunSqlItem(Struct):
    """The SQL of a run, and the line that its error names."""

    text: str
    step: str | None
    line: int | None


class RunDetail(RunItem):
    """A run with why it failed, what it read and made, and its steps."""

    process_name: str | None
    log_location: str | None
    facets_json: Any
    saw_success: bool
    saw_failure: bool
    created_at: datetime
    inputs: Sequence[InputItem] = ()
    outputs: Sequence[OutputItem] = ()
    steps: Sequence[StepItem] = ()
    reason: str | None = None
    """Why it failed, or is LOST."""


class RunStory(RunDetail):
    """Everything about a run: also its SQL, checks, parent and children."""

    trace: str | None = None
    seconds: float | None = None
    attempts: int = 1
    where: str | None = None
    sql: RunSqlItem | None = None
    parent: RelatedRunItem | None = None
    children: Sequence[RelatedRunItem] = ()
    checks: Sequence[CheckOutcomeItem] = ()
