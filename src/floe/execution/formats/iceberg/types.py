"""The types of lake tables as Spark writes them: what the catalog keeps of a column."""

from collections.abc import Mapping
from typing import Any

NAMES = {
    "long": "bigint",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "uuid": "string",
}


def spark_type(kind: str | Mapping[str, Any]) -> str:
    """Return the name of a type of Iceberg's metadata, as Spark's own schema has it."""
    if isinstance(kind, str):
        name = kind.replace(" ", "")
        return "binary" if name.startswith("fixed[") else NAMES.get(name, name)
    match kind["type"]:
        case "list":
            return f"array<{spark_type(kind['element'])}>"
        case "map":
            return f"map<{spark_type(kind['key'])},{spark_type(kind['value'])}>"
        case _:
            fields = (f"{one['name']}:{spark_type(one['type'])}" for one in kind["fields"])
            return f"struct<{','.join(fields)}>"
