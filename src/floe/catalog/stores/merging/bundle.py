"""Several writes and questions in one statement of PostgreSQL.

A statement costs the driver and the server more than the few rows of one event. So writes to
different tables wait here, and go out together as one: each becomes a part of one WITH, and the
rows that they return come back under the number of their part. Statements follow each other
without waiting, until an answer is needed.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from psycopg import RawCursor

from floe.catalog.stores.merging.rules import Row

MANY_ROWS = 500


class Part(NamedTuple):
    """One write or question: its SQL, its table if it writes, and what it returns.

    `before` is a named query that the SQL refers to.
    """

    sql: str
    table: str
    returning: tuple[str, ...] = ()
    numbers: tuple[bool, ...] = ()
    before: str = ""
    reads: str = ""


class Answer:
    """The rows of a part, sent for when they are asked for."""

    def __init__(self, bundle: "Bundle") -> None:
        self._bundle = bundle
        self.rows: list[Row] | None = None

    def fetchall(self) -> list[Row]:
        if self.rows is None:
            self._bundle.collect()
        assert self.rows is not None
        return self.rows


class _Sent(NamedTuple):
    """A statement that is on its way, and what it will answer."""

    cursor: RawCursor[Row]
    parts: tuple[Part, ...]
    answers: list[Answer]


class Bundle:
    """What waits to be sent on one connection."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._parts: list[Part] = []
        self._values: list[Any] = []
        self._answers: list[Answer] = []
        self._written: set[str] = set()
        self._rows = 0
        self._sent: list[_Sent] = []

    def add(self, part: Part, values: Sequence[Any], rows: int = 1) -> Answer:
        """Let a part wait.

        The parts of a statement do not see what the others write, and may not write one row
        twice. So whatever touches a table that is written to goes into the next statement.
        """
        if part.table in self._written or part.reads in self._written:
            self.send()
        answer = Answer(self)
        self._parts.append(part)
        self._values += values
        self._answers.append(answer)
        self._rows += rows
        if part.table:
            self._written.add(part.table)
        # The server may as well write many rows while others are still being gathered.
        if self._rows >= MANY_ROWS:
            self.send()
        return answer

    def send(self) -> None:
        """Send all that waits."""
        if not self._parts:
            return
        parts, values, answers = tuple(self._parts), self._values, self._answers
        self._parts, self._values, self._answers = [], [], []
        self._written, self._rows = set(), 0
        cursor = RawCursor(self._driver)
        cursor.execute(_statement(parts), values, prepare=True)
        self._sent.append(_Sent(cursor, parts, answers))

    def collect(self) -> None:
        """Send all that waits, and hand every answer its rows."""
        self.send()
        sent, self._sent = self._sent, []
        for cursor, parts, answers in sent:
            for answer in answers:
                answer.rows = []
            if any(part.returning for part in parts):
                _hand_out(parts, answers, cursor.fetchall())


def _hand_out(parts: Sequence[Part], answers: Sequence[Answer], rows: Sequence[Row]) -> None:
    for place, *texts in rows:
        part, found = parts[place], answers[place].rows
        assert found is not None
        found.append(
            tuple(
                int(text) if number and text is not None else text
                for number, text in zip(part.numbers, texts, strict=False)
            )
        )


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
