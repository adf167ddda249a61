"""Report runs and datasets from a job host; spool undelivered reports on disk.

Standard library only and quick to import, because legacy jobs call it on every run. Hence named
tuples instead of dataclasses, and slow modules are imported inside the functions that use them.
"""

from collections.abc import Iterable
from typing import Any

from floe.client.errors import BadReportError
from floe.client.messages import Dataset, Day, dataset_message, process_message
from floe.client.outbox import Delivery, DeliveryCounts, State
from floe.client.reporter import Client, Run, describe, describe_queue
from floe.client.spool import Queue

__all__ = [
    "BadReportError",
    "Client",
    "Delivery",
    "DeliveryCounts",
    "Queue",
    "Run",
    "State",
    "dataset_message",
    "describe",
    "describe_queue",
    "process_message",
    "register_dataset",
    "register_process",
    "run",
]


def register_dataset(
    dataset_name: str, version: str | None = None, status: str = "READY", **details: Any
) -> Delivery:
    """Report that a version of a dataset is READY or FAILED."""
    return Client().register_dataset(dataset_name, version, status, **details)


def register_process(process_name: str, status: str, **details: Any) -> Delivery:
    """Report a run of a process: STARTED, RUNNING, SUCCESS, FAILED or CANCELLED."""
    return Client().register_process(process_name, status, **details)


def run(
    process_name: str,
    *,
    inputs: Iterable[Dataset] = (),
    outputs: Iterable[Dataset] = (),
    business_date: Day | None = None,
    run_id: str | None = None,
    **details: Any,
) -> Run:
    """Report a block (`with run("AUTOSYS/BOX/JOB"): …`) or function (`@run(…)`)."""
    return Client().run(
        process_name,
        inputs=inputs,
        outputs=outputs,
        business_date=business_date,
        run_id=run_id,
        **details,
    )
