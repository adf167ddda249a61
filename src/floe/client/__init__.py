"""What a job host needs: report runs and datasets, and keep what cannot be delivered on disk.

Only the standard library, and quick to import: an old job calls one of these and goes on. So
there are tuples here where other packages have dataclasses, and costly modules are imported where
they are used.
"""

from collections.abc import Iterable
from typing import Any

from floe.client.errors import BadReportError
from floe.client.messages import Dataset, Day, dataset_message, process_message
from floe.client.outbox import Delivery, Drained, State
from floe.client.reporter import Client, describe, describe_queue
from floe.client.running import Run
from floe.client.spool import Queue

__all__ = [
    "BadReportError",
    "Client",
    "Delivery",
    "Drained",
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
    """Say that a version of a dataset is READY or FAILED."""
    return Client().register_dataset(dataset_name, version, status, **details)


def register_process(process_name: str, status: str, **details: Any) -> Delivery:
    """Say that a process STARTED, is RUNNING, or ended: SUCCESS, FAILED, CANCELLED."""
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
    """Report a piece of Python as a run: `with run("AUTOSYS/BOX/JOB") as this: …`, or `@run(…)`."""
    return Client().run(
        process_name,
        inputs=inputs,
        outputs=outputs,
        business_date=business_date,
        run_id=run_id,
        **details,
    )
