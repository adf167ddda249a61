"""SQL may stand in floe.yaml or in a file of its own: `sql: sql/exposure.sql`."""

import re
from pathlib import Path

_FILE = re.compile(r"[^\s;]+\.sql", re.IGNORECASE)


def names_file(sql: str) -> bool:
    """Tell whether a text names a SQL file rather than being SQL."""
    return _FILE.fullmatch(sql) is not None


def read_sql(root: Path, sql: str) -> str:
    """Return SQL as it stands, or the content of the file it names."""
    return (root / sql).read_text(encoding="utf-8") if names_file(sql) else sql
