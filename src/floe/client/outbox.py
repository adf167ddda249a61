"""Messages leave through the spool: first to the disk, then to the server, in one order.

Nothing here raises because floe is down, the disk is full or the server refuses: the job that
reports goes on, and learns from the answer what became of its message.
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
# For so long after a time-out no call waits for another one.
PAUSE = 30.0


class State(Enum):
    """What became of a message."""

    DELIVERED = "delivered"
    SPOOLED = "spooled"
    REFUSED = "refused"
    LOST = "lost"


class Delivery(NamedTuple):
    """What became of a message, of which run it was, and why if it was not delivered."""

    state: State
    run_id: str
    reason: str = ""

    @property
    def delivered(self) -> bool:
        return self.state is State.DELIVERED


class Drained:
    """What a delivery of waiting messages came to."""

    def __init__(self) -> None:
        self.delivered = 0
        self.refused = 0
        self.waiting = 0
        self.reason = ""


class Outbox:
    """The way of messages from this host to the API."""

    def __init__(self, spool: Spool, connect: Callable[[], Transport], patience: float) -> None:
        self._spool = spool
        # Each delivery has a connection of its own, so that threads may share an outbox.
        self._connect = connect
        self._patience = patience

    def send(self, message: dict[str, Any], *, insist: bool = False) -> Delivery:
        """Put a message into the spool and deliver what waits there, up to it and beyond.

        One who insists tries even while others have seen the server silent, and however long the
        queue is.
        """
        run_id = str(message["run"]["runId"])
        body = encode(message)
        try:
            ticket = self._append(body)
        except SpoolFullError as error:
            return self._send_past_spool(body, run_id, str(error))
        except OSError as error:
            trouble = f"The spool {self._spool.folder} cannot be written: {error}."
            return self._send_past_spool(body, run_id, trouble)
        try:
            reason = self._drain(insist=insist).reason
        except OSError as error:
            reason = f"the spool cannot be read: {error}"
        return self._look_up(ticket, body, run_id, reason)

    def deliver(self) -> Drained:
        """Deliver all that waits, however long it takes."""
        drained = self._drain(insist=True)
        drained.waiting = self._spool.count_waiting()
        return drained

    def _append(self, body: bytes) -> Ticket:
        try:
            return self._spool.append(body)
        except SpoolFullError:
            # Where the server is up again this makes room.
            self._drain(insist=False)
            return self._spool.append(body)

    def _send_past_spool(self, body: bytes, run_id: str, trouble: str) -> Delivery:
        """The disk does not take the message; if none waits before it, it may go at once."""
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
                return Delivery(State.DELIVERED, run_id, f"delivered, but not spooled: {trouble}")
            reason = answer.reason
        return Delivery(State.LOST, run_id, f"{trouble} {reason}".strip())

    def _look_up(self, ticket: Ticket, body: bytes, run_id: str, reason: str) -> Delivery:
        if not self._spool.is_done(ticket):
            return Delivery(State.SPOOLED, run_id, reason or "another process is delivering")
        if self._spool.is_refused(body):
            return Delivery(State.REFUSED, run_id, self._spool.reason_of(body))
        return Delivery(State.DELIVERED, run_id)

    def _drain(self, *, insist: bool) -> Drained:
        drained = Drained()
        if not insist and self._is_paused():
            drained.reason = "the server did not answer a moment ago"
            return drained
        deadline = None if insist else time.monotonic() + self._patience
        # Whoever appends while we deliver does not wait for us. So look again after letting go.
        while not drained.reason and self._spool.bytes_waiting():
            with self._spool.delivering(wait=insist) as ours:
                if not ours:
                    break
                with closing(self._connect()) as transport:
                    self._deliver_waiting(transport, drained, deadline)
        return drained

    def _deliver_waiting(
        self, transport: Transport, drained: Drained, deadline: float | None
    ) -> None:
        while waiting := self._spool.next(BATCH):
            answers = transport.post(waiting.bodies)
            self._settle(waiting, answers, drained)
            last = answers[-1]
            if last.verdict is Verdict.LATER:
                drained.reason = last.reason or "the server asks to try again later"
                self._set_pause(on=last.silent)
                return
            self._set_pause(on=False)
            if deadline is not None and time.monotonic() > deadline:
                drained.reason = "many messages wait; later calls deliver the rest"
                return

    def _settle(self, waiting: Waiting, answers: list[Answer], drained: Drained) -> None:
        """Put aside what was refused, then remember how far we are: in this order, for a crash."""
        settled = 0
        for body, answer in zip(waiting.bodies, answers, strict=False):
            if answer.verdict is Verdict.LATER:
                break
            settled += 1
            if answer.verdict is Verdict.REFUSED:
                self._spool.refuse(body, answer.reason)
                drained.refused += 1
            else:
                drained.delivered += 1
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
    """Write a message as one line. What is not Unicode, as a file's name may be, turns into `?`."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
