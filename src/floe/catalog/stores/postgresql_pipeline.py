"""Send statements to PostgreSQL in a pipeline, straight through libpq.

An event is a handful of statements whose values are already text. A psycopg cursor would adapt,
prepare and watch each of them, which costs more than the server takes for it. And a statement costs
more than the few rows of one event. So writes to different tables wait in a bundle and go out as
one statement: each becomes a part of one WITH, and returned rows come back with the index of their
part. Statements follow each other without waiting, until a result is needed.
"""

import select
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from psycopg import DatabaseError, OperationalError, errors
from psycopg.pq import DiagnosticField, ExecStatus, Format, PipelineStatus
from psycopg.pq.abc import PGconn, PGresult

from floe.catalog.stores.merging import Row

Value = str | bytes
# The server keeps a plan for each; the least recently used one is evicted.
MAX_PREPARED = 200
SUCCESS = frozenset({ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK})


class Pipeline:
    """One connection in libpq's pipeline mode, from `begin` to `end` or `abandon`.

    What is sent between them is one transaction, or part of one that was started before.
    """

    def __init__(self, connection: PGconn) -> None:
        self._pg = connection
        self._prepared: dict[str, bytes] = {}
        self._name_ids = count()
        # For every pending result: whether the caller wants it.
        self._pending: list[bool] = []
        self._syncs = 0
        self._poll = select.poll()

    def begin(self) -> None:
        """Enter pipeline mode: statements no longer wait for results."""
        self._poll.register(self._pg.socket, select.POLLIN)
        self._pg.enter_pipeline_mode()

    def send(self, sql: str, values: Sequence[Value] = ()) -> None:
        """Queue a statement. Bytes are values in PostgreSQL's binary format."""
        encoded = [value if isinstance(value, bytes) else value.encode() for value in values]
        formats = [Format.BINARY if isinstance(value, bytes) else Format.TEXT for value in values]
        self._pg.send_query_prepared(self._name(sql), encoded, formats)
        self._pending.append(True)

    def flush(self) -> None:
        """Send what is queued. Doing so for each statement would slow down both sides."""
        self._pg.flush()

    def receive(self) -> list[PGresult]:
        """Return the results of everything sent since the last call, in order."""
        if not self._pending:
            return []
        self._pg.send_flush_request()
        return self._take()

    def end(self) -> list[PGresult]:
        """Wait for all results and the commit, and leave pipeline mode."""
        self._sync()
        results = self._take()
        self._leave()
        return results

    def abandon(self) -> None:
        """Leave pipeline mode after an error, and forget the prepared statements."""
        self._prepared.clear()
        self._pending.clear()
        # A lost connection cannot be cleaned up, and the error is known already.
        with suppress(DatabaseError):
            if self._pg.pipeline_status != PipelineStatus.OFF:
                # Without it the sync would commit what was sent before the error.
                self._pg.send_query_params(b"ROLLBACK", None)
                self._sync()
                self._leave()

    def _name(self, sql: str) -> bytes:
        name = self._prepared.pop(sql, None)
        if name is None:
            self._evict_oldest()
            name = f"floe_{next(self._name_ids)}".encode()
            self._pg.send_prepare(name, sql.encode())
            self._pending.append(False)
        self._prepared[sql] = name
        return name

    def _evict_oldest(self) -> None:
        if len(self._prepared) >= MAX_PREPARED:
            oldest = self._prepared.pop(next(iter(self._prepared)))
            self._pg.send_query_params(b"DEALLOCATE " + oldest, None)
            self._pending.append(False)

    def _sync(self) -> None:
        self._pg.pipeline_sync()
        self._syncs += 1

    def _take(self) -> list[PGresult]:
        results: list[PGresult] = []
        failed: PGresult | None = None
        for wanted in self._pending:
            result = self._next()
            # libpq returns a NULL result after each one, to mark its end.
            self._next()
            assert result is not None
            if result.status == ExecStatus.FATAL_ERROR:
                failed = failed or result
            elif wanted and result.status in SUCCESS:
                results.append(result)
        self._pending.clear()
        if failed is not None:
            raise _error_of(failed)
        return results

    def _leave(self) -> None:
        failed: PGresult | None = None
        while self._syncs:
            result = self._next()
            if result is not None and result.status == ExecStatus.PIPELINE_SYNC:
                self._syncs -= 1
            elif result is not None and result.status == ExecStatus.FATAL_ERROR:
                failed = result
        self._pg.exit_pipeline_mode()
        self._poll.unregister(self._pg.socket)
        # An error at this point means that the commit failed.
        if failed is not None:
            raise _error_of(failed)

    def _next(self) -> PGresult | None:
        # libpq would wait itself, but while holding the interpreter lock.
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
    primary = result.error_field(DiagnosticField.MESSAGE_PRIMARY)
    message = primary.decode("utf-8", "replace") if primary else result.get_error_message()
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


SEND_AFTER_ROWS = 500


class Part(NamedTuple):
    """One write or query: its SQL, its table if it writes, and what it returns.

    `before` is a named query that the SQL refers to. `reads` is a table that it reads; if a part
    of the same statement writes to that table, `fed_sql` also reads what that part returns.
    """

    sql: str
    table: str
    returning: tuple[str, ...] = ()
    are_ints: tuple[bool, ...] = ()
    before: str = ""
    reads: str = ""
    fed_sql: str = ""


# Placeholder in `fed_sql` for the part whose rows it reads.
FEEDER = "@feeder"


class PendingAnswer:
    """The rows of a part, fetched from the server on first use."""

    def __init__(self, bundle: "Bundle", index: int) -> None:
        self._bundle = bundle
        self.index = index
        self.rows: list[Row] | None = None

    def fetchall(self) -> list[Row]:
        if self.rows is None:
            self._bundle.collect()
        assert self.rows is not None
        return self.rows


class _Sent(NamedTuple):
    """A statement that was sent, and the answers it will fill."""

    parts: tuple[Part, ...]
    answers: list[PendingAnswer]


class Bundle:
    """Parts that wait to be sent as one statement."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._parts: list[Part] = []
        self._values: list[Value] = []
        self._answers: list[PendingAnswer] = []
        # The tables that are written to, with the index of the part.
        self._written: dict[str, int] = {}
        self._rows = 0
        self._sent: list[_Sent] = []

    def add(self, part: Part, values: Sequence[Value], rows: int = 1) -> PendingAnswer:
        """Queue a part.

        The parts of a statement do not see what the others write, and may not write a row twice.
        So a part that uses a table that is written to goes into the next statement.
        """
        feeder = self._written.get(part.reads)
        if part.fed_sql and feeder is not None and part.table not in self._written:
            part = fed_by(part, feeder)
        elif part.table in self._written or feeder is not None:
            self.send()
        answer = PendingAnswer(self, len(self._parts))
        self._parts.append(part)
        self._values += values
        self._answers.append(answer)
        self._rows += rows
        if part.table:
            self._written[part.table] = answer.index
        # The server can write these rows while the next ones are being gathered.
        if self._rows >= SEND_AFTER_ROWS:
            self.start()
        return answer

    def may_refer(self, answer: object, table: str) -> bool:
        """Tell whether a part that writes to a table fits into the statement of an answer."""
        return answer in self._answers and table not in self._written

    def start(self) -> None:
        """Send all queued parts now, so that the server starts on them."""
        self.send()
        self._pipeline.flush()

    def send(self) -> None:
        """Send all queued parts as one statement."""
        if not self._parts:
            return
        parts, values, answers = tuple(self._parts), self._values, self._answers
        self._parts, self._values, self._answers = [], [], []
        self._written, self._rows = {}, 0
        self._pipeline.send(_statement(parts), values)
        self._sent.append(_Sent(parts, answers))

    def collect(self) -> None:
        """Send all queued parts, and fill every answer."""
        self.send()
        self.fill_answers(self._pipeline.receive())

    def fill_answers(self, results: Sequence[PGresult]) -> None:
        """Fill the answers of all statements sent since the last call."""
        sent, self._sent = self._sent, []
        # Results before the first statement, such as that of BEGIN, are ignored.
        own_results = results[len(results) - len(sent) :]
        for (parts, answers), result in zip(sent, own_results, strict=True):
            for answer in answers:
                answer.rows = []
            if any(part.returning for part in parts):
                _fill_answers(parts, answers, result)


def _fill_answers(
    parts: Sequence[Part], answers: Sequence[PendingAnswer], result: PGresult
) -> None:
    value = result.get_value
    for row in range(result.ntuples):
        index = int(value(row, 0) or 0)
        rows = answers[index].rows
        assert rows is not None
        rows.append(
            tuple(
                [
                    _read(value(row, column), as_int=is_int)
                    for column, is_int in enumerate(parts[index].are_ints, 1)
                ]
            )
        )


def _read(raw: bytes | None, *, as_int: bool) -> int | str | None:
    if raw is None:
        return None
    return int(raw) if as_int else raw.decode()


@lru_cache(maxsize=64)
def fed_by(part: Part, feeder: int) -> Part:
    """Return the part with the SQL that reads from another part of the statement."""
    return part._replace(sql=part.fed_sql.replace(FEEDER, f"part_{feeder}"))


@lru_cache(maxsize=512)
def _statement(parts: tuple[Part, ...]) -> str:
    width = max(len(part.returning) for part in parts)
    named = ", ".join(
        f"{part.before}part_{index} AS ({part.sql})" for index, part in enumerate(parts)
    )
    answers = [
        f"SELECT {index}, {_columns(part, width)} FROM part_{index}"  # noqa: S608
        for index, part in enumerate(parts)
        if part.returning
    ]
    return _numbered(f"WITH {named} {' UNION ALL '.join(answers) or 'SELECT 1'}")


def _numbered(sql: str) -> str:
    """Write placeholders as $1, $2, … because libpq does no conversion."""
    texts = sql.split("%s")
    return texts[0] + "".join(f"${index}{text}" for index, text in enumerate(texts[1:], 1))


def _columns(part: Part, width: int) -> str:
    """Return the columns as text, padded for UNION ALL to the widest part."""
    columns = [f"{name}::text" for name in part.returning]
    return ", ".join(columns + ["NULL"] * (width - len(columns)))
