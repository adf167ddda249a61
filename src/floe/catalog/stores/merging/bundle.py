"""Several writes and questions in one statement of PostgreSQL.

A statement costs the driver and the server more than the few rows of one event. So writes to
different tables wait here, and go out together as one: each becomes a part of one WITH, and the
rows that they return come back under the number of their part. Statements follow each other
without waiting, until an answer is needed.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from psycopg.pq.abc import PGresult

from floe.catalog.stores.merging.rules import Row
from floe.catalog.stores.merging.wire import Value, Wire

MANY_ROWS = 500


class Part(NamedTuple):
    """One write or question: its SQL, its table if it writes, and what it returns.

    `before` is a named query that the SQL refers to. `reads` is a table that it reads; where a
    part of the same statement writes to that one, `fed_sql` reads what that part returns as well.
    """

    sql: str
    table: str
    returning: tuple[str, ...] = ()
    numbers: tuple[bool, ...] = ()
    before: str = ""
    reads: str = ""
    fed_sql: str = ""


# What stands in `fed_sql` for the part that feeds it.
FEEDER = "@feeder"


class Answer:
    """The rows of a part, sent for when they are asked for."""

    def __init__(self, bundle: "Bundle", place: int) -> None:
        self._bundle = bundle
        self.place = place
        self.rows: list[Row] | None = None

    def fetchall(self) -> list[Row]:
        if self.rows is None:
            self._bundle.collect()
        assert self.rows is not None
        return self.rows


class _Sent(NamedTuple):
    """A statement that is on its way, and what it will answer."""

    parts: tuple[Part, ...]
    answers: list[Answer]


class Bundle:
    """What waits to be sent on one connection."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._parts: list[Part] = []
        self._values: list[Value] = []
        self._answers: list[Answer] = []
        # The tables that are written to, and by which part.
        self._written: dict[str, int] = {}
        self._rows = 0
        self._sent: list[_Sent] = []

    def add(self, part: Part, values: Sequence[Value], rows: int = 1) -> Answer:
        """Let a part wait.

        The parts of a statement do not see what the others write, and may not write one row
        twice. So whatever touches a table that is written to goes into the next statement.
        """
        feeder = self._written.get(part.reads)
        if part.fed_sql and feeder is not None and part.table not in self._written:
            part = fed_by(part, feeder)
        elif part.table in self._written or feeder is not None:
            self.send()
        answer = Answer(self, len(self._parts))
        self._parts.append(part)
        self._values += values
        self._answers.append(answer)
        self._rows += rows
        if part.table:
            self._written[part.table] = answer.place
        # The server may as well write many rows while others are still being gathered.
        if self._rows >= MANY_ROWS:
            self.start()
        return answer

    def may_refer(self, answer: object, table: str) -> bool:
        """Whether a part that writes to a table can go into the same statement as an answer's."""
        return answer in self._answers and table not in self._written

    def start(self) -> None:
        """Send all that waits, and let the server begin with it."""
        self.send()
        self._wire.push()

    def send(self) -> None:
        """Send all that waits."""
        if not self._parts:
            return
        parts, values, answers = tuple(self._parts), self._values, self._answers
        self._parts, self._values, self._answers = [], [], []
        self._written, self._rows = {}, 0
        self._wire.send(_statement(parts), values)
        self._sent.append(_Sent(parts, answers))

    def collect(self) -> None:
        """Send all that waits, and hand every answer its rows."""
        self.send()
        self.hand_out(self._wire.receive())

    def hand_out(self, results: Sequence[PGresult]) -> None:
        """Hand every answer its rows, of all results that came since the last time."""
        sent, self._sent = self._sent, []
        # What came before the first statement, such as BEGIN, is of no interest.
        ours = results[len(results) - len(sent) :]
        for (parts, answers), result in zip(sent, ours, strict=True):
            for answer in answers:
                answer.rows = []
            if any(part.returning for part in parts):
                _hand_out(parts, answers, result)


def _hand_out(parts: Sequence[Part], answers: Sequence[Answer], result: PGresult) -> None:
    value = result.get_value
    for row in range(result.ntuples):
        place = int(value(row, 0) or 0)
        found = answers[place].rows
        assert found is not None
        found.append(
            tuple(
                [
                    _read(value(row, column), number=number)
                    for column, number in enumerate(parts[place].numbers, 1)
                ]
            )
        )


def _read(raw: bytes | None, *, number: bool) -> int | str | None:
    if raw is None:
        return None
    return int(raw) if number else raw.decode()


@lru_cache(maxsize=64)
def fed_by(part: Part, feeder: int) -> Part:
    """A part that reads from the one at a place of the same statement."""
    return part._replace(sql=part.fed_sql.replace(FEEDER, f"part_{feeder}"))


@lru_cache(maxsize=512)
def _statement(parts: tuple[Part, ...]) -> str:
    width = max(len(part.returning) for part in parts)
    named = ", ".join(
        f"{part.before}part_{place} AS ({part.sql})" for place, part in enumerate(parts)
    )
    answers = [
        f"SELECT {place}, {_columns(part, width)} FROM part_{place}"  # noqa: S608
        for place, part in enumerate(parts)
        if part.returning
    ]
    return _numbered(f"WITH {named} {' UNION ALL '.join(answers) or 'SELECT 1'}")


def _numbered(sql: str) -> str:
    """Write placeholders as PostgreSQL has them, so that the driver need not read the text."""
    texts = sql.split("%s")
    return texts[0] + "".join(f"${place}{text}" for place, text in enumerate(texts[1:], 1))


def _columns(part: Part, width: int) -> str:
    """All answers have one shape: as many columns as the widest has, as text."""
    given = [f"{name}::text" for name in part.returning]
    return ", ".join(given + ["NULL"] * (width - len(given)))
