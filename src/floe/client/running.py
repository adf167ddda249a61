"""A piece of Python as a run of a process: START before it, COMPLETE or FAIL after it."""

import uuid
from collections.abc import Iterable
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, Protocol

from floe.client.errors import BadReportError
from floe.client.messages import Dataset, process_message
from floe.client.outbox import Delivery


class Sender(Protocol):
    """Takes messages to the API."""

    def send(self, message: dict[str, Any]) -> Delivery:
        """Send a message."""


class Run(ContextDecorator):
    """One run, or as a decorator one run a call. The job's own exception always goes on its way."""

    def __init__(
        self,
        sender: Sender,
        process_name: str,
        inputs: Iterable[Dataset],
        outputs: Iterable[Dataset],
        *,
        run_id: str | None,
        details: dict[str, Any],
    ) -> None:
        self._sender = sender
        self._process_name = process_name
        self._inputs = list(inputs)
        self._outputs = list(outputs)
        self._given_id = run_id
        self._details = details
        self.run_id = run_id or str(uuid.uuid4())

    def _recreate_cm(self) -> "Run":
        """Give every call of a decorated function a run of its own."""
        return Run(
            self._sender,
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
        status, said = _ending(error)
        if error is None or said is None:
            self._report(status)
            return
        import traceback

        try:
            stack = "".join(traceback.format_exception(error))
            self._report(status, error=said, stack_trace=stack)
        except BadReportError as wrong:
            error.add_note(f"floe could not report this: {wrong}")

    def input(self, dataset_name: str, **details: Any) -> None:
        """Add a dataset that the run reads: namespace, version."""
        self._add(self._inputs, dataset_name, details)

    def output(self, dataset_name: str, **details: Any) -> None:
        """Add a dataset that the run writes: namespace, version, rows, size, path, schema."""
        self._add(self._outputs, dataset_name, details)

    def _add(self, datasets: list[Dataset], name: str, details: dict[str, Any]) -> None:
        given: Any = {"name": name, **details}
        # Written once now, so that a mistake shows on the line that makes it.
        process_message(self._process_name, "RUNNING", outputs=[given], **self._details)
        datasets.append(given)

    def _report(self, status: str, **more: Any) -> None:
        self._sender.send(
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


def _ending(error: BaseException | None) -> tuple[str, str | None]:
    """How a run ended: an exit with code 0 is a success, an interrupt is a cancellation."""
    if error is None:
        return "SUCCESS", None
    if isinstance(error, SystemExit):
        if error.code in (None, 0):
            return "SUCCESS", None
        return "FAILED", f"exit: {error.code}"
    if isinstance(error, KeyboardInterrupt):
        return "CANCELLED", "interrupted"
    return "FAILED", f"{type(error).__name__}: {error}"
