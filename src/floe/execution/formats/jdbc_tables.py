"""A version in a database: written to a table beside, then swapped in by one transaction.

The table floe_published says which versions were let in, in the same transaction: after a crash
nobody has to guess.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from floe import clock
from floe.errors import FloeError
from floe.execution.databases import Transaction
from floe.execution.formats.contract import VersionPlace, VersionUnreadableError
from floe.execution.formats.keys import DuplicateKeysError

PUBLISHED = "floe_published"
LONGEST_NAME = 60
_NAME = re.compile(r'(?:([A-Za-z_][\w$]*|"[^"]+")\.)?([A-Za-z_][\w$]*|"[^"]+")')


class TableNameError(FloeError):
    """What stands as the table of a dataset is not a table's name."""

    def __init__(self, dataset: str, name: str) -> None:
        super().__init__(
            f"'{name}' of '{dataset}' is not the name of a table. Write table or schema.table."
        )


@dataclass(frozen=True)
class Table:
    """A table by its name, in SQL and in parts."""

    schema: str | None
    name: str

    @property
    def sql(self) -> str:
        return f"{_sql(self.schema)}.{_sql(self.name)}" if self.schema else _sql(self.name)

    def beside(self, name: str) -> "Table":
        """Another table in the same schema."""
        return Table(self.schema, name)

    def is_in(self, told: Transaction) -> bool:
        return told.has_table(self.schema, self.name)


def _sql(name: str) -> str:
    plain = re.fullmatch(r"[a-z_][a-z0-9_$]*", name)
    return name if plain else f'"{name}"'


def parse_table(dataset: str, text: str) -> Table:
    """Read the name of a table; what is not quoted is in lower case, as in SQL."""
    found = _NAME.fullmatch(text.strip())
    if found is None:
        raise TableNameError(dataset, text)
    schema, name = (None if part is None else _plain(part) for part in found.groups())
    return Table(schema, str(name))


def _plain(part: str) -> str:
    return part.strip('"') if part.startswith('"') else part.lower()


def staging_of(table: Table, tag: str) -> Table:
    """Return the table that a version is written to before it is let in."""
    name = f"{table.name}__floe_{re.sub(r'[^a-z0-9]+', '_', tag.lower())}"
    if len(name) > LONGEST_NAME:
        # Databases cut long names, and two versions would share what is left.
        name = f"{name[:47]}_{hashlib.sha256(f'{table.name}{tag}'.encode()).hexdigest()[:12]}"
    return table.beside(name)


def make_sqlite_table(told: Transaction, table: Table, schema: Any) -> None:
    """Make a table for a frame. Spark cannot: it takes SQLite's "no such table" for a failure."""
    kinds = {"double": "REAL", "float": "REAL", "binary": "BLOB", "string": "TEXT"}
    kinds |= dict.fromkeys(("tinyint", "smallint", "int", "bigint", "boolean"), "INTEGER")
    columns = [
        f"{told.quote(field.name)} {kinds.get(field.dataType.simpleString(), 'DECIMAL')}"
        for field in schema.fields
    ]
    told.run(f"CREATE TABLE {table.sql} ({', '.join(columns)})")


def publish_staging(told: Transaction, place: VersionPlace, table: Table) -> None:
    """Let a staged version in, once."""
    make_published(told, table)
    if is_published(told, table, place.tag):
        return
    staging = staging_of(table, place.tag)
    if not staging.is_in(told):
        raise VersionUnreadableError(place.dataset, place.tag, f"{staging.sql} is gone.")
    mode = str(place.details.get("mode", "replace"))
    _SWAPS[mode if table.is_in(told) else "replace"](told, place, table, staging)
    note_published(told, table, place.tag)


def _replace(told: Transaction, place: VersionPlace, table: Table, staging: Table) -> None:
    old = staging_of(table, f"{place.tag}_old")
    if table.is_in(told):
        told.run(f"ALTER TABLE {table.sql} RENAME TO {_sql(old.name)}")
    told.run(f"ALTER TABLE {staging.sql} RENAME TO {_sql(table.name)}")
    told.run(f"DROP TABLE IF EXISTS {old.sql}")


def _append(told: Transaction, place: VersionPlace, table: Table, staging: Table) -> None:
    columns = ", ".join(told.quote(name) for name in told.columns(staging.schema, staging.name))
    rows = f"SELECT {columns} FROM {staging.sql}"  # noqa: S608
    told.run(f"INSERT INTO {table.sql} ({columns}) {rows}")
    told.run(f"DROP TABLE {staging.sql}")


def _overwrite(told: Transaction, place: VersionPlace, table: Table, staging: Table) -> None:
    delete_partition(told, place, table)
    _append(told, place, table, staging)


def delete_partition(told: Transaction, place: VersionPlace, table: Table) -> None:
    """Remove the rows of a version's partition."""
    column = told.quote(str(place.spec.partition_column))
    key = partition_value(place, told.dialect)
    told.run(f"DELETE FROM {table.sql} WHERE {column} = :key", key=key)  # noqa: S608


def _merge(told: Transaction, place: VersionPlace, table: Table, staging: Table) -> None:
    keys = [told.quote(name) for name in place.spec.keys]
    same = " AND ".join(f"s.{key} = {table.sql}.{key}" for key in keys)
    found = f"SELECT 1 FROM {staging.sql} s WHERE {same}"  # noqa: S608
    told.run(f"DELETE FROM {table.sql} WHERE EXISTS ({found})")  # noqa: S608
    _append(told, place, table, staging)


_SWAPS: Mapping[str, Callable[[Transaction, VersionPlace, Table, Table], None]] = {
    "replace": _replace,
    "append": _append,
    "overwrite_partition": _overwrite,
    "merge": _merge,
}


def partition_value(place: VersionPlace, dialect: str) -> Any:
    """Return the partition of a version in the type of its column."""
    types = {column.name: column.type.strip().lower() for column in place.spec.columns}
    kind = types.get(str(place.spec.partition_column), "string")
    if kind == "date" and dialect != "sqlite":
        return date.fromisoformat(place.key)
    return int(place.key) if kind.endswith("int") or kind == "long" else place.key


def check_keys(told: Transaction, place: VersionPlace, staging: Table) -> None:
    """Refuse rows to be merged of which two have the same keys."""
    keys = ", ".join(told.quote(name) for name in place.spec.keys)
    twice = told.fetch(
        f"SELECT {keys}, count(*) FROM {staging.sql} GROUP BY {keys} "  # noqa: S608
        "HAVING count(*) > 1"
    )
    if twice:
        raise DuplicateKeysError(place.dataset, place.spec.keys, twice)


def take_back(told: Transaction, place: VersionPlace, table: Table) -> None:
    """Take a version out of its table again."""
    mode = str(place.details.get("mode", "replace"))
    if mode == "replace":
        away = staging_of(table, place.tag)
        told.run(f"ALTER TABLE {table.sql} RENAME TO {_sql(away.name)}")
    elif mode == "overwrite_partition":
        delete_partition(told, place, table)
    else:
        reason = f"what was written with '{mode}' cannot be told from the other rows of {table.sql}"
        raise VersionUnreadableError(place.dataset, place.tag, f"{reason}.")
    told.run(
        f"DELETE FROM {table.beside(PUBLISHED).sql} WHERE table_name = :name AND tag = :tag",  # noqa: S608
        name=table.name,
        tag=place.tag,
    )


def make_published(told: Transaction, table: Table) -> None:
    """Make the table that says which versions were let in, if it is not there."""
    published = table.beside(PUBLISHED)
    if not published.is_in(told):
        told.run(
            f"CREATE TABLE {published.sql} (table_name varchar(200) NOT NULL, "
            "tag varchar(200) NOT NULL, seq bigint NOT NULL, published_at varchar(40) NOT NULL, "
            "PRIMARY KEY (table_name, tag))"
        )


def note_published(told: Transaction, table: Table, tag: str) -> None:
    """Note that a version is in its table."""
    told.run(
        f"INSERT INTO {table.beside(PUBLISHED).sql} (table_name, tag, seq, published_at) "  # noqa: S608
        f"VALUES (:name, :tag, :seq, :at)",
        name=table.name,
        tag=tag,
        seq=len(published_tags(told, table)) + 1,
        at=clock.now().isoformat(),
    )


def published_tags(told: Transaction, table: Table) -> list[str]:
    """Return the tags that were let into a table, the newest last."""
    if not table.beside(PUBLISHED).is_in(told):
        return []
    found = told.fetch(
        f"SELECT tag FROM {table.beside(PUBLISHED).sql} "  # noqa: S608
        "WHERE table_name = :name ORDER BY seq",
        name=table.name,
    )
    return [str(tag) for (tag,) in found]


def is_published(told: Transaction, table: Table, tag: str) -> bool:
    """Tell whether a version was let in."""
    return tag in published_tags(told, table)


def count_rows(told: Transaction, table: Table) -> int:
    """Count the rows of a table."""
    return int(told.fetch(f"SELECT count(*) FROM {table.sql}")[0][0])  # noqa: S608
