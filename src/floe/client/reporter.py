"""The client: what a job calls to report, from Python or through the command line."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from floe.client.environment import look_around
from floe.client.messages import (
    ENDED,
    PROCESS_STATUSES,
    Dataset,
    Day,
    dataset_message,
    process_message,
    status_word,
)
from floe.client.names import read_process
from floe.client.open_runs import OpenRuns
from floe.client.outbox import Delivery, Drained, Outbox, State
from floe.client.running import Run
from floe.client.spool import Queue, Spool
from floe.client.transport import Transport

DEFAULT_TIMEOUT = 5.0


class Client:
    """Reports to one API, through one spool. What is not given comes from the environment.

    No method raises because floe is down: what cannot be delivered waits on disk, and a warning
    says so. A report that is wrong in itself, such as an unknown status, raises at once. To
    insist is to wait until the whole queue is delivered or the server says no.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        spool: Path | str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        *,
        insist: bool = False,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        around = look_around(url=url)
        self._lake = around.lake
        self._run_id = around.run_id
        self._insist = insist
        self._warn = warn or _log_warning
        folder = Path(spool) if spool else around.spool
        self.spool = Spool(folder, around.recipient, around.spool_limit)
        connect = partial(Transport, around.url, token or around.token, timeout)
        self._outbox = Outbox(self.spool, connect, patience=timeout)
        self._open_runs = OpenRuns(self.spool.folder)

    def register_dataset(
        self, dataset_name: str, version: str | None = None, status: str = "READY", **details: Any
    ) -> Delivery:
        """Say that a version of a dataset is READY or FAILED; details as in dataset_message."""
        details.setdefault("lake", self._lake)
        return self.send(dataset_message(dataset_name, version, status, **details))

    def register_process(self, process_name: str, status: str, **details: Any) -> Delivery:
        """Say how a run of a process is getting on; details as in process_message.

        Without a run id, FLOE_RUN_ID says which run it is; else it is the run of this process
        that STARTED last on this host and has not ended.
        """
        details.setdefault("lake", self._lake)
        word = status_word(status, PROCESS_STATUSES)
        if details.get("run_id"):
            return self.send(process_message(process_name, word, **details))
        key = read_process(process_name, details.get("namespace")).full
        details["run_id"] = self._run_id or self._open_runs.run_for(key, word)
        delivery = self.send(process_message(process_name, word, **details))
        if word in ENDED:
            self._open_runs.forget(key)
        return delivery

    def run(
        self,
        process_name: str,
        *,
        inputs: Iterable[Dataset] = (),
        outputs: Iterable[Dataset] = (),
        business_date: Day | None = None,
        run_id: str | None = None,
        **details: Any,
    ) -> Run:
        """Report a piece of Python as a run: `with client.run("AUTOSYS/BOX/JOB") as run: …`."""
        details.update(lake=details.get("lake", self._lake), business_date=business_date)
        return Run(
            self, process_name, inputs, outputs, run_id=run_id or self._run_id, details=details
        )

    def send(self, message: dict[str, Any]) -> Delivery:
        """Send any OpenLineage event of a run, through the spool like the others."""
        delivery = self._outbox.send(message, insist=self._insist)
        if delivery.state is not State.DELIVERED or delivery.reason:
            self._warn(f"floe: {describe(delivery)}")
        return delivery

    def deliver(self) -> Drained:
        """Deliver all that waits in the spool."""
        return self._outbox.deliver()


def _log_warning(text: str) -> None:
    import logging

    logging.getLogger("floe.client").warning(text)


def describe(delivery: Delivery) -> str:
    """Say in one sentence what became of a message."""
    words = {
        State.DELIVERED: "delivered",
        State.SPOOLED: "kept on disk, to be delivered later",
        State.REFUSED: "refused for good, and put aside in the spool's folder refused",
        State.LOST: "LOST: it could be neither delivered nor kept on disk",
    }
    reason = f": {delivery.reason}" if delivery.reason else ""
    return f"the report was {words[delivery.state]}{reason}"


def describe_queue(queue: Queue) -> str:
    """Say what waits for another API, and how to deliver it."""
    variable = "FLOE_API_URL" if "://" in queue.recipient else "FLOE_PROJECT"
    reports = "1 report waits" if queue.waiting == 1 else f"{queue.waiting} reports wait"
    return (
        f"{reports} for {queue.recipient}. "
        f"Deliver with: {variable}={queue.recipient} floe events deliver"
    )
