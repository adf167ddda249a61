"""Open the platform's databases by connection name, and run SQL in them.

The only module of this package that uses SQLAlchemy.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floe.errors import FloeError
from floe.execution.site import Site
from floe.spec.platform import Connection as ConnectionSpec

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

BUSY_SECONDS = 30
SCRIPTS = {"postgresql": "postgres", "sqlite": "sqlite", "mysql": "mysql", "oracle": "oracle"}
"""sqlglot's names of SQLAlchemy's dialects. Others are split as plain SQL."""

_STANDARD = """
    SELECT parameter_name FROM information_schema.parameters
    WHERE specific_name IN (
        SELECT specific_name FROM information_schema.routines
        WHERE lower(routine_name) = :name AND :schema IN ('', lower(routine_schema))
    )
"""
_DB2 = """
    SELECT parmname FROM syscat.routineparms
    WHERE lower(routinename) = :name AND :schema IN ('', lower(routineschema))
"""
PARAMETERS = {"postgresql": _STANDARD, "mysql": _STANDARD, "mssql": _STANDARD, "ibm_db_sa": _DB2}
"""The query that lists a procedure's parameters, by dialect."""


class ConnectionAddressError(FloeError):
    """A connection in platform.yaml has no usable address."""

    def __init__(self, name: str, wanted: str, example: str) -> None:
        super().__init__(
            f"platform.yaml: connections.{name} has no {wanted}, and floe cannot derive it. "
            f"Add it, for example: {example}."
        )


class DatabaseError(FloeError):
    """A statement failed in a database."""

    def __init__(self, connection: str, reason: str, statement: str = "") -> None:
        ran = f" Statement: {' '.join(statement.split())[:300]}" if statement else ""
        super().__init__(f"The database '{connection}' says: {reason.strip()}{ran}")


def jdbc_address(site: Site, name: str) -> str:
    """Return a connection's JDBC URL; SQLite paths are relative to the project."""
    connection = site.connection(name)
    if connection.jdbc_url is None:
        return _jdbc_from_url(site, name, connection)
    kind, file = "jdbc:sqlite:", connection.jdbc_url.removeprefix("jdbc:sqlite:")
    if not connection.jdbc_url.startswith(kind) or file.startswith((":", "file:")):
        return connection.jdbc_url
    return f"{kind}{site.root / file}"


def _jdbc_from_url(site: Site, name: str, connection: ConnectionSpec) -> str:
    url = database_url(site, name) if connection.url else None
    if url is not None and url.get_backend_name() == "sqlite":
        return f"jdbc:sqlite:{url.database}"
    if url is not None and url.get_backend_name() == "postgresql":
        return f"jdbc:postgresql://{url.host or 'localhost'}:{url.port or 5432}/{url.database}"
    raise ConnectionAddressError(name, "jdbc_url", "jdbc:postgresql://host:5432/risk")


def database_url(site: Site, name: str) -> "URL":
    """Return a connection's SQLAlchemy URL. Contains the password: do not store it."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    connection = site.connection(name)
    try:
        url = make_url(connection.url or _url_from_jdbc(name, connection.jdbc_url or ""))
    except ArgumentError as error:
        raise ConnectionAddressError(name, "valid url", "sqlite:///data/risk.db") from error
    if url.get_backend_name() == "sqlite":
        in_memory = url.database in (None, "", ":memory:")
        return url if in_memory else url.set(database=str(site.root / str(url.database)))
    if connection.user is not None:
        url = url.set(username=connection.user)
    if connection.password is not None:
        url = url.set(password=site.reveal(connection.password))
    return url


def _url_from_jdbc(name: str, address: str) -> str:
    if address.startswith("jdbc:postgresql://"):
        # The part after the question mark holds settings of the JDBC driver.
        return f"postgresql+psycopg{address.removeprefix('jdbc:postgresql').partition('?')[0]}"
    if address.startswith("jdbc:sqlite:"):
        file = address.removeprefix("jdbc:sqlite:").partition("?")[0]
        return f"sqlite:///{file}"
    raise ConnectionAddressError(name, "url", "postgresql+psycopg://host:5432/risk")


@contextmanager
def open_engine(site: Site, name: str) -> Iterator["Engine"]:
    """Open a database engine, and dispose of it at the end."""
    from sqlalchemy import NullPool, create_engine, event

    url = database_url(site, name)
    if url.get_backend_name() == "sqlite" and url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, poolclass=NullPool)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _leave_transactions_alone)
        event.listen(engine, "begin", _begin)
    try:
        yield engine
    finally:
        engine.dispose()


def _leave_transactions_alone(connection: Any, _: object) -> None:
    # Python's driver would commit before each DDL statement.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")


def _begin(connection: "Connection") -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


@dataclass(frozen=True)
class Transaction:
    """An open transaction; an error rolls back everything."""

    name: str
    connection: "Connection"

    @property
    def dialect(self) -> str:
        return self.connection.dialect.name

    def run(self, sql: str, **params: Any) -> int:
        """Run a statement; return the affected row count, or -1 if unknown."""
        return int(self._execute(sql, params).rowcount)

    def fetch(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        """Run a query and return its rows."""
        return [tuple(row) for row in self._execute(sql, params)]

    def _execute(self, sql: str, params: Mapping[str, Any]) -> Any:
        from sqlalchemy import text
        from sqlalchemy.exc import SQLAlchemyError

        statement = text(sql)
        # Bind only the parameters that this statement names.
        wanted = statement.compile().params
        bound = {name: self._value(params[name]) for name in wanted if name in params}
        try:
            return self.connection.execute(statement, bound)
        except SQLAlchemyError as error:
            raise DatabaseError(self.name, _reason(error), sql) from error

    def _value(self, value: Any) -> Any:
        days = self.dialect == "sqlite" and isinstance(value, date | datetime)
        return value.isoformat() if days else value

    def has_table(self, schema: str | None, table: str) -> bool:
        """Tell whether a table exists."""
        from sqlalchemy import inspect

        return bool(inspect(self.connection).has_table(table, schema=schema))

    def columns(self, schema: str | None, table: str) -> list[str]:
        """Return the names of a table's columns."""
        from sqlalchemy import inspect

        return [
            str(column["name"]) for column in inspect(self.connection).get_columns(table, schema)
        ]

    def parameters(self, procedure: str) -> frozenset[str]:
        """Return a procedure's parameter names in lower case; empty if unknown."""
        query = PARAMETERS.get(self.dialect)
        if query is None:
            return frozenset()
        schema, _, name = procedure.replace('"', "").rpartition(".")
        rows = self.fetch(query, name=name.lower(), schema=schema.lower())
        return frozenset(str(row[0]).lower() for row in rows if row[0])

    def quote(self, name: str) -> str:
        """Quote a name, which keeps its case and special characters."""
        return str(self.connection.dialect.identifier_preparer.quote_identifier(name))


@contextmanager
def transaction(site: Site, name: str) -> Iterator[Transaction]:
    """Open a database for one transaction, rolled back on error."""
    from sqlalchemy.exc import SQLAlchemyError

    with open_engine(site, name) as engine:
        try:
            with engine.begin() as connection:
                yield Transaction(name, connection)
        except SQLAlchemyError as error:
            raise DatabaseError(name, _reason(error)) from error


def _reason(error: Exception) -> str:
    # SQLAlchemy's own message contains the parameters, which may be confidential.
    return str(getattr(error, "orig", None) or error).splitlines()[0]


def run_statements(
    site: Site, name: str, texts: Sequence[str], params: Mapping[str, Any]
) -> list[int]:
    """Run statements in one transaction; return the affected row count of each."""
    with transaction(site, name) as database:
        statements = [
            statement for text in texts for statement in split_statements(text, database.dialect)
        ]
        return [database.run(statement, **params) for statement in statements]


def call_procedure(
    site: Site,
    name: str,
    procedure: str,
    params: Mapping[str, Any],
    offered: Mapping[str, Any],
) -> None:
    """Call a stored procedure with all of `params`, by name.

    Values in `offered` are passed too if the procedure is known to declare them.
    """
    with transaction(site, name) as database:
        known = database.parameters(procedure)
        taken = {param: value for param, value in offered.items() if param in known}
        values = {**taken, **params}
        given = ", ".join(f"{param} => :{param}" for param in values)
        database.run(f"CALL {procedure}({given})", **values)


def split_statements(text: str, dialect: str) -> list[str]:
    """Split a script at semicolons, ignoring those inside strings."""
    from sqlglot import Dialect, TokenType
    from sqlglot.errors import TokenError

    try:
        tokens = Dialect.get_or_raise(SCRIPTS.get(dialect)).tokenize(text)
    except TokenError:
        return [text]
    ends = [token.start for token in tokens if token.token_type == TokenType.SEMICOLON]
    starts = [0, *(end + 1 for end in ends)]
    parts = [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return [part.strip() for part in parts if part.strip(" \t\r\n;")]
