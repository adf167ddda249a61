"""What old jobs report, and what they are told."""

from datetime import datetime

from msgspec import Struct

from floe.api.schemas.fields import Count, Day, Name, Namespace, Prose, Words


class DatasetUse(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A dataset that a process reads or writes, where its name alone does not say enough."""

    name: Name
    namespace: Namespace | None = None
    version: Name | None = None
    rows: Count | None = None
    size: Count | None = None
    path: Prose | None = None


class DatasetReport(Struct, forbid_unknown_fields=True):
    """A version of a dataset is READY, or it FAILED."""

    dataset_name: Name
    version: Name | None = None
    status: Words = "READY"
    namespace: Namespace | None = None
    business_date: Day | None = None
    rows: Count | None = None
    size: Count | None = None
    path: Prose | None = None
    inputs: list[Name | DatasetUse] | None = None
    error: Prose | None = None
    job: Name | None = None
    run_id: Words | None = None
    historical: bool = False
    occurred_at: datetime | None = None


class ProcessReport(Struct, forbid_unknown_fields=True):
    """A run of a process STARTED, is RUNNING, or ended: SUCCESS, FAILED or CANCELLED."""

    process_name: Name
    status: Words
    namespace: Namespace | None = None
    run_id: Words | None = None
    business_date: Day | None = None
    inputs: list[Name | DatasetUse] | None = None
    outputs: list[Name | DatasetUse] | None = None
    error: Prose | None = None
    technology: Words | None = None
    historical: bool = False
    occurred_at: datetime | None = None


class Reported(Struct):
    """The report is committed, under this run."""

    run_id: str
