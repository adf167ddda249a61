"""Lake tables by their names: what they are called in SQL, and what their references are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floe.spec.identity import lake_table

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

MAIN = "main"


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    """Return a text as a literal of SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@dataclass(frozen=True)
class LakeTable:
    """The table of a dataset: `credit.exposure` is `lake.credit.exposure`."""

    lake: str
    parts: tuple[str, ...]

    @classmethod
    def of(cls, lake: str, dataset: str) -> "LakeTable":
        return cls(lake, lake_table(dataset))

    @property
    def sql(self) -> str:
        """The table, as a statement names it."""
        return ".".join(map(quoted, (self.lake, *self.parts)))

    @property
    def namespace(self) -> str:
        return ".".join(map(quoted, (self.lake, *self.parts[:-1])))

    @property
    def argument(self) -> str:
        """The table, as an argument of the lake's procedures."""
        return text(".".join(map(quoted, self.parts)))

    def procedure(self, name: str, *arguments: str) -> str:
        """Return the call of a procedure of the lake on this table."""
        return f"CALL {quoted(self.lake)}.system.{name}({', '.join((self.argument, *arguments))})"

    def at(self, snapshot: str) -> str:
        """Return what selects the table as it was at a snapshot."""
        return f"SELECT * FROM {self.sql} VERSION AS OF {int(snapshot)}"  # noqa: S608

    def on(self, branch: str) -> str:
        """Return what selects the table as a branch shows it."""
        return f"SELECT * FROM {self.sql} VERSION AS OF {text(branch)}"  # noqa: S608


def references(spark: "SparkSession", table: LakeTable) -> dict[str, str]:
    """Return the branches and tags of a table with their snapshots; none if there is no table."""
    if not spark.catalog.tableExists(table.sql):
        return {}
    rows = spark.sql(f"SELECT name, snapshot_id FROM {table.sql}.refs").collect()  # noqa: S608
    return {row.name: str(row.snapshot_id) for row in rows}


def run_script(spark: "SparkSession", statements: Sequence[str]) -> None:
    """Run statements in one call to the server, in their order."""
    # Not collected: a script has run when the call returns, and its answer would be one more.
    body = "\n".join(f"EXECUTE IMMEDIATE {text(statement)};" for statement in statements)
    spark.sql(f"BEGIN\n{body}\nEND")
