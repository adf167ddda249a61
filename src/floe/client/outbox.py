"""Send messages through the spool: first to disk, then to the server, in order.

Nothing here raises because the server is down, the disk is full or a message is refused: the job
continues, and the returned Delivery says what happened.
"""

import json
import os
import time
from collections.abc import Callable
from contextlib import closing, suppress
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from floe import clock
from floe.client.spool import Spool, SpoolFullError, Ticket, Waiting
from floe.client.transport import Answer, Transport, Verdict

BATCH = 500
# Seconds after a time-out during which calls only spool.
PAUSE = 30.0


class State(Enum):
    """The outcome of sending a message."""

    DELIVERED = "delivered"
    SPOOLED = "spooled"
    REFUSED = "refused"
    LOST = "lost"


class Delivery(NamedTuple):
    """The outcome of sending a message, its run id, and the reason of a failure."""

    state: State
    run_id: str
    reason: str = ""

    @property
    def delivered(self) -> bool:
        return self.state is State.DELIVERED


class DeliveryCounts:
    """The result of delivering the spooled messages."""

    def __init__(self) -> None:
        self.delivered = 0
        self.refused = 0
        self.waiting = 0
        self.reason = ""


class Outbox:
    """Sends messages from this host to the API."""

    def __init__(self, spool: Spool, connect: Callable[[], Transport], patience: float) -> None:
        self._spool = spool
        # Each delivery opens its own connection, so threads can share an outbox.
        self._connect = connect
        self._patience = patience

    def send(self, message: dict[str, Any], *, insist: bool = False) -> Delivery:
        """Spool a message and deliver everything in the spool.

        With insist, try even shortly after a time-out and however long the queue is.
        """
        run_id = str(message["run"]["runId"])
        body = encode(message)
        try:
            ticket = self._append(body)
        except SpoolFullError as error:
            return self._send_past_spool(body, run_id, str(error))
        except OSError as error:
            problem = f"Cannot write to the spool {self._spool.folder}: {error}."
            return self._send_past_spool(body, run_id, problem)
        try:
            reason = self._drain(insist=insist).reason
        except OSError as error:
            reason = f"cannot read the spool: {error}"
        return self._look_up(ticket, body, run_id, reason)

    def deliver(self) -> DeliveryCounts:
        """Deliver everything in the spool, however long it takes."""
        counts = self._drain(insist=True)
        counts.waiting = self._spool.count_waiting()
        return counts

    def _append(self, body: bytes) -> Ticket:
        try:
            return self._spool.append(body)
        except SpoolFullError:
            # This makes room if the server is up again.
            self._drain(insist=False)
            return self._spool.append(body)

    def _send_past_spool(self, body: bytes, run_id: str, problem: str) -> Delivery:
        """Send a message that cannot be spooled, unless older ones are still queued."""
        reason = ""
        try:
            reason = self._drain(insist=False).reason
            first = self._spool.bytes_waiting() == 0
        except OSError:
            first = True
        if first and not reason:
            with closing(self._connect()) as transport:
                answer = transport.post_one(body)
            if answer.verdict is Verdict.TAKEN:
                return Delivery(
                    State.DELIVERED, run_id, f"but it could not be saved on disk first: {problem}"
                )
            reason = answer.reason
        return Delivery(State.LOST, run_id, f"{problem} {reason}".strip())

    def _look_up(self, ticket: Ticket, body: bytes, run_id: str, reason: str) -> Delivery:
        if not self._spool.is_done(ticket):
            return Delivery(State.SPOOLED, run_id, reason or "another process is delivering")
        if self._spool.is_refused(body):
            return Delivery(State.REFUSED, run_id, self._spool.reason_of(body))
        return Delivery(State.DELIVERED, run_id)

    def _drain(self, *, insist: bool) -> DeliveryCounts:
        counts = DeliveryCounts()
        if not insist and self._is_paused():
            counts.reason = f"the server timed out less than {PAUSE:.0f} seconds ago"
            return counts
        deadline = None if insist else time.monotonic() + self._patience
        # Others append without waiting while we deliver, so look again after releasing the lock.
        while not counts.reason and self._spool.bytes_waiting():
            with self._spool.delivering(wait=insist) as ours:
                if not ours:
                    break
                with closing(self._connect()) as transport:
                    self._deliver_waiting(transport, counts, deadline)
        return counts

    def _deliver_waiting(
        self, transport: Transport, counts: DeliveryCounts, deadline: float | None
    ) -> None:
        while waiting := self._spool.next(BATCH):
            answers = transport.post(waiting.bodies)
            self._record_answers(waiting, answers, counts)
            last = answers[-1]
            if last.verdict is Verdict.LATER:
                counts.reason = last.reason or "the server asked to try again later"
                self._set_pause(on=last.timed_out)
                return
            self._set_pause(on=False)
            if deadline is not None and time.monotonic() > deadline:
                counts.reason = "the queue is long; later calls deliver the rest"
                return

    def _record_answers(
        self, waiting: Waiting, answers: list[Answer], counts: DeliveryCounts
    ) -> None:
        """Save refused messages, then advance the spool: a crash in between loses nothing."""
        settled = 0
        for body, answer in zip(waiting.bodies, answers, strict=False):
            if answer.verdict is Verdict.LATER:
                break
            settled += 1
            if answer.verdict is Verdict.REFUSED:
                self._spool.refuse(body, answer.reason)
                counts.refused += 1
            else:
                counts.delivered += 1
        if settled:
            self._spool.advance(waiting.segment, waiting.ends[settled - 1])

    @property
    def _pause_file(self) -> Path:
        return self._spool.folder / "pause"

    def _is_paused(self) -> bool:
        try:
            since = self._pause_file.stat().st_mtime
        except OSError:
            return False
        return 0 <= clock.now().timestamp() - since < PAUSE

    def _set_pause(self, *, on: bool) -> None:
        with suppress(OSError):
            if on:
                self._pause_file.touch(mode=0o600)
                os.utime(self._pause_file)
            else:
                self._pause_file.unlink(missing_ok=True)


def encode(message: dict[str, Any]) -> bytes:
    """Encode a message as one line. Characters that are not valid Unicode become `?`."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
