"""What floe.yaml says of a dataset or a process, in the words that Dagster shows."""

import re
from collections.abc import Iterable

from dagster import AssetKey

from floe.spec import DatasetSpec, ProcessSpec
from floe.spec.identity import dagster_key
from floe.spec.processes import Engine
from floe.spec.promises import Owner

KINDS: dict[Engine, set[str]] = {
    "spark_sql": {"spark", "sql"},
    "pyspark": {"spark", "python"},
    "python": {"python", "pandas"},
    "command": {"shell"},
    "database": {"sql"},
}
LONGEST_TAG = 63


def asset_key(dataset: str) -> AssetKey:
    """Return the key of a dataset."""
    return AssetKey(dagster_key(dataset))


def group_of(name: str, dataset: DatasetSpec | None) -> str:
    """Return the group of a dataset: its category, else the schema that it is in."""
    category = dataset.category if dataset is not None else None
    return plain(category or name.partition(".")[0])


def owners_of(*owners: Owner | None) -> list[str]:
    """Return who answers for something, the first who is named: by mail, and as a team."""
    owner = next(filter(None, owners), None)
    if owner is None:
        return []
    return [*([owner.email] if owner.email else []), f"team:{owner.team}"]


def tags_of(*tags: Iterable[str]) -> dict[str, str]:
    """Return words to find something by as tags, as far as Dagster takes their letters."""
    words = [word for some in tags for word in some]
    return {re.sub(r"[^\w.-]", "_", word, flags=re.ASCII)[:LONGEST_TAG]: "" for word in words}


def kinds_of(process: ProcessSpec | None, dataset: DatasetSpec | None) -> set[str]:
    """Return the technologies that something is made with."""
    made_with = KINDS[process.runs_on] if process is not None else set()
    return made_with | ({plain(dataset.format)} if dataset is not None else set())


def plain(text: str) -> str:
    """Return a name with letters, digits and _ only, as Dagster wants it."""
    return re.sub(r"\W", "_", text, flags=re.ASCII)
