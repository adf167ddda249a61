"""The client that jobs use to report runs, from Python or the command line."""

import uuid
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from floe.client.environment import read_environment
from floe.client.errors import BadReportError
from floe.client.messages import (
    ENDED,
    PROCESS_STATUSES,
    Dataset,
    Day,
    dataset_message,
    parse_status,
    process_message,
)
from floe.client.names import parse_dataset, parse_process
from floe.client.outbox import Delivery, DeliveryCounts, Outbox, State
from floe.client.spool import Queue, Spool
from floe.client.transport import Transport

DEFAULT_TIMEOUT = 5.0
MAX_CONSUMERS_QUERIED = 5


class Client:
    """Reports to one API through one spool. Defaults come from the environment.

    No method raises because floe is down: undelivered reports stay on disk and a warning is
    logged. An invalid report, such as one with an unknown status, raises at once. With insist,
    each call waits until the whole queue is delivered or the server refuses it.
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
        environment = read_environment(url=url)
        self._lake = environment.lake
        self._run_id = environment.run_id
        self._insist = insist
        self._warn = warn or _log_warning
        folder = Path(spool) if spool else environment.spool
        self.spool = Spool(folder, environment.recipient, environment.spool_limit)
        connect = partial(Transport, environment.url, token or environment.token, timeout)
        self._connect = connect
        self._outbox = Outbox(self.spool, connect, patience=timeout)
        self._open_runs = OpenRuns(self.spool.folder)

    def register_dataset(
        self, dataset_name: str, version: str | None = None, status: str = "READY", **details: Any
    ) -> Delivery:
        """Report that a version is READY or FAILED; for details see dataset_message."""
        details.setdefault("lake", self._lake)
        return self.send(dataset_message(dataset_name, version, status, **details))

    def register_process(self, process_name: str, status: str, **details: Any) -> Delivery:
        """Report the status of a run; for details see process_message.

        Without a run id, FLOE_RUN_ID is used, and otherwise the run of this process that started
        last on this host and has not ended.
        """
        details.setdefault("lake", self._lake)
        status = parse_status(status, PROCESS_STATUSES)
        if details.get("run_id"):
            return self.send(process_message(process_name, status, **details))
        key = parse_process(process_name, details.get("namespace")).full
        details["run_id"] = self._run_id or self._open_runs.run_for(key, status)
        delivery = self.send(process_message(process_name, status, **details))
        if status in ENDED:
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
    ) -> "Run":
        """Report a block as a run: `with client.run("AUTOSYS/BOX/JOB") as run: …`."""
        details.update(lake=details.get("lake", self._lake), business_date=business_date)
        return Run(
            self, process_name, inputs, outputs, run_id=run_id or self._run_id, details=details
        )

    def send(self, message: dict[str, Any]) -> Delivery:
        """Send any OpenLineage run event through the spool."""
        delivery = self._outbox.send(message, insist=self._insist)
        if delivery.state is not State.DELIVERED or delivery.reason:
            self._warn(f"floe: report {describe(delivery)}")
        return delivery

    def deliver(self) -> DeliveryCounts:
        """Deliver everything in the spool."""
        return self._outbox.deliver()

    def find_dataset(self, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        """Return the API's record of a dataset, or None if it is not available."""
        from urllib.parse import quote

        full_name = parse_dataset(name, namespace, self._lake).full
        return self._get(f"/api/v1/dataset?full_name={quote(full_name, safe='')}")

    def count_checks(self, dataset_id: int) -> int:
        """Return the number of checks of a dataset; counts one page of at most 100."""
        page = self._get(f"/api/v1/dataset/{dataset_id}/checks?limit=100")
        return len(page["items"]) if page else 0

    def find_triggered(self, consumers: list[dict[str, Any]]) -> list[str]:
        """Return the names of consumers that floe starts; looks up only the first few."""
        details = (
            self._get(f"/api/v1/process/{c['process_id']}")
            for c in consumers[:MAX_CONSUMERS_QUERIED]
        )
        return [
            detail["name"] or detail["process_key"]
            for detail in details
            if detail and detail["trigger_mode"] in ("DATASET", "HYBRID")
        ]

    def _get(self, path: str) -> dict[str, Any] | None:
        from contextlib import closing

        with closing(self._connect()) as transport:
            return transport.get(path)


def _log_warning(text: str) -> None:
    import logging

    logging.getLogger("floe.client").warning(text)


def describe(delivery: Delivery) -> str:
    """Describe a delivery's outcome and reason: `received`, `saved on disk …`."""
    outcomes = {
        State.DELIVERED: "received",
        State.SPOOLED: "saved on disk, not delivered yet",
        State.REFUSED: "refused, saved in the spool folder 'refused'",
        State.LOST: "LOST, neither delivered nor saved on disk",
    }
    reason = f": {delivery.reason}" if delivery.reason else ""
    return f"{outcomes[delivery.state]}{reason}"


def describe_queue(queue: Queue) -> str:
    """Describe what is queued for another API and how to deliver it."""
    variable = "FLOE_API_URL" if "://" in queue.recipient else "FLOE_PROJECT"
    reports = "1 report is" if queue.waiting == 1 else f"{queue.waiting} reports are"
    return (
        f"{reports} queued for {queue.recipient}. "
        f"Deliver with: {variable}={queue.recipient} floe events deliver"
    )


class Run(ContextDecorator):
    """Reports a block as a run, or each call of a decorated function.

    Exceptions of the job are reported and raised again.
    """

    def __init__(
        self,
        client: Client,
        process_name: str,
        inputs: Iterable[Dataset],
        outputs: Iterable[Dataset],
        *,
        run_id: str | None,
        details: dict[str, Any],
    ) -> None:
        self._client = client
        self._process_name = process_name
        self._inputs = list(inputs)
        self._outputs = list(outputs)
        self._given_id = run_id
        self._details = details
        self.run_id = run_id or str(uuid.uuid4())

    def _recreate_cm(self) -> "Run":
        """Start a new run for each call of a decorated function."""
        return Run(
            self._client,
            self._process_name,
            self._inputs,
            self._outputs,
            run_id=self._given_id,
            details=self._details,
        )

    def __enter__(self) -> "Run":
        self._report("STARTED")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        status, message = _describe_end(error)
        if error is None or message is None:
            self._report(status)
            return
        import traceback

        try:
            stack = "".join(traceback.format_exception(error))
            self._report(status, error=message, stack_trace=stack)
        except BadReportError as invalid:
            error.add_note(f"floe could not report this: {invalid}")

    def input(self, dataset_name: str, **details: Any) -> None:
        """Add a dataset that the run reads: namespace, version."""
        self._add(self._inputs, dataset_name, details)

    def output(self, dataset_name: str, **details: Any) -> None:
        """Add a dataset that the run writes: namespace, version, rows, size, path, schema."""
        self._add(self._outputs, dataset_name, details)

    def _add(self, datasets: list[Dataset], name: str, details: dict[str, Any]) -> None:
        given: Any = {"name": name, **details}
        # Build a message now, so that a mistake is raised on the line that makes it.
        process_message(self._process_name, "RUNNING", outputs=[given], **self._details)
        datasets.append(given)

    def _report(self, status: str, **more: Any) -> None:
        self._client.send(
            process_message(
                self._process_name,
                status,
                run_id=self.run_id,
                inputs=self._inputs,
                outputs=self._outputs,
                **self._details,
                **more,
            )
        )


def _describe_end(error: BaseException | None) -> tuple[str, str | None]:
    """Return status and message: exit code 0 is SUCCESS, an interrupt CANCELLED."""
    if error is None:
        return "SUCCESS", None
    if isinstance(error, SystemExit):
        if error.code in (None, 0):
            return "SUCCESS", None
        return "FAILED", f"exit: {error.code}"
    if isinstance(error, KeyboardInterrupt):
        return "CANCELLED", "interrupted"
    return "FAILED", f"{type(error).__name__}: {error}"


class OpenRuns:
    """Remembers the open run of each process: STARTED and SUCCESS share a run id.

    A shell job that reports in two calls cannot keep a run id. Two simultaneous runs of one process
    on one host cannot be told apart this way; they have to pass their run ids.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "runs"

    def run_for(self, process: str, status: str) -> str:
        """Return the run id for a report without a run id."""
        known = None if status == "STARTED" else self._recall(process)
        run_id = known or str(uuid.uuid4())
        if status not in ENDED:
            self._remember(process, run_id)
        return run_id

    def forget(self, process: str) -> None:
        """Forget the run of a process, because it ended."""
        with suppress(OSError):
            self._file(process).unlink(missing_ok=True)

    def _recall(self, process: str) -> str | None:
        try:
            return str(uuid.UUID(self._file(process).read_text(encoding="ascii")))
        except (OSError, ValueError):
            return None

    def _remember(self, process: str, run_id: str) -> None:
        # If this fails, the spool fails too and reports it.
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self._file(process).with_suffix(f".{uuid.uuid4().hex}")
            draft.write_text(run_id, encoding="ascii")
            draft.replace(self._file(process))

    def _file(self, process: str) -> Path:
        import hashlib

        return self._folder / hashlib.sha256(process.encode()).hexdigest()[:32]
