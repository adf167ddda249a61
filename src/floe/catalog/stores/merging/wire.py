"""Statements on their way to PostgreSQL, one behind the other, straight through libpq.

An event is a handful of statements whose values are written out already. A cursor of the driver
would adapt, prepare and watch each of them, which costs more than the server takes for it.
"""

import select
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

from psycopg import DatabaseError, OperationalError, errors
from psycopg.pq import DiagnosticField, ExecStatus, Format, PipelineStatus
from psycopg.pq.abc import PGconn, PGresult

Value = str | bytes
# The server keeps a plan for each; the one that was not used for longest makes room.
MOST_PREPARED = 200
FINE = frozenset({ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK})


class Wire:
    """One connection in libpq's pipeline mode, from `begin` to `end` or `abandon`.

    What is sent between them is one transaction, unless one was begun before: then it is a part
    of that.
    """

    def __init__(self, connection: PGconn) -> None:
        self._pg = connection
        self._prepared: dict[str, bytes] = {}
        self._numbers = count()
        # For every answer that is still to come: whether anybody waits for it.
        self._owed: list[bool] = []
        self._syncs = 0
        self._poll = select.poll()

    def begin(self) -> None:
        """Let statements follow each other without waiting for answers."""
        self._poll.register(self._pg.socket, select.POLLIN)
        self._pg.enter_pipeline_mode()

    def send(self, sql: str, values: Sequence[Value] = ()) -> None:
        """Write a statement down for the server. Bytes are in PostgreSQL's binary form."""
        given = [value if isinstance(value, bytes) else value.encode() for value in values]
        forms = [Format.BINARY if isinstance(value, bytes) else Format.TEXT for value in values]
        self._pg.send_query_prepared(self._name(sql), given, forms)
        self._owed.append(True)

    def push(self) -> None:
        """Let the server begin with what was sent. To wake it for each statement costs both."""
        self._pg.flush()

    def receive(self) -> list[PGresult]:
        """The answers to all that was sent since the last time, in order."""
        if not self._owed:
            return []
        self._pg.send_flush_request()
        return self._take()

    def end(self) -> list[PGresult]:
        """Wait for everything and its commit, and leave the connection as it was."""
        self._sync()
        answers = self._take()
        self._leave()
        return answers

    def abandon(self) -> None:
        """Leave after an error. What was prepared meanwhile is forgotten."""
        self._prepared.clear()
        self._owed.clear()
        # Of a connection that is gone nothing is expected, and the error is known already.
        with suppress(DatabaseError):
            if self._pg.pipeline_status != PipelineStatus.OFF:
                # Without it the end would commit what was sent before the error.
                self._pg.send_query_params(b"ROLLBACK", None)
                self._sync()
                self._leave()

    def _name(self, sql: str) -> bytes:
        name = self._prepared.pop(sql, None)
        if name is None:
            self._make_room()
            name = f"floe_{next(self._numbers)}".encode()
            self._pg.send_prepare(name, sql.encode())
            self._owed.append(False)
        self._prepared[sql] = name
        return name

    def _make_room(self) -> None:
        if len(self._prepared) >= MOST_PREPARED:
            oldest = self._prepared.pop(next(iter(self._prepared)))
            self._pg.send_query_params(b"DEALLOCATE " + oldest, None)
            self._owed.append(False)

    def _sync(self) -> None:
        self._pg.pipeline_sync()
        self._syncs += 1

    def _take(self) -> list[PGresult]:
        answers: list[PGresult] = []
        failed: PGresult | None = None
        for awaited in self._owed:
            answer = self._next()
            # Nothing comes after each answer, to tell that it was the whole.
            self._next()
            assert answer is not None
            if answer.status == ExecStatus.FATAL_ERROR:
                failed = failed or answer
            elif awaited and answer.status in FINE:
                answers.append(answer)
        self._owed.clear()
        if failed is not None:
            raise _error_of(failed)
        return answers

    def _leave(self) -> None:
        failed: PGresult | None = None
        while self._syncs:
            answer = self._next()
            if answer is not None and answer.status == ExecStatus.PIPELINE_SYNC:
                self._syncs -= 1
            elif answer is not None and answer.status == ExecStatus.FATAL_ERROR:
                failed = answer
        self._pg.exit_pipeline_mode()
        self._poll.unregister(self._pg.socket)
        # What failed now is the commit.
        if failed is not None:
            raise _error_of(failed)

    def _next(self) -> PGresult | None:
        # libpq would wait by itself, but with the interpreter's lock in its hands.
        unsent = self._pg.flush()
        while unsent or self._pg.is_busy():
            self._poll.modify(
                self._pg.socket, select.POLLIN | select.POLLOUT if unsent else select.POLLIN
            )
            self._poll.poll()
            self._pg.consume_input()
            unsent = self._pg.flush()
        return self._pg.get_result()


def _error_of(result: PGresult) -> DatabaseError:
    state = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
    said = result.error_field(DiagnosticField.MESSAGE_PRIMARY)
    message = said.decode("utf-8", "replace") if said else result.get_error_message()
    if not state:
        return OperationalError(message)
    try:
        kind = errors.lookup(state)
    except KeyError:
        unknown = DatabaseError(f"{message} ({state})")
        unknown.sqlstate = state
        return unknown
    error = kind(message)
    assert isinstance(error, DatabaseError)
    return error
