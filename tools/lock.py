"""Regenerate requirements/*.txt: versions pinned, files hashed, no index URLs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
OPTIONS = (
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-header",
    "--no-annotate",
    # Required by dagster-dbt, but deprecated, not needed, and it warns at every import.
    "--no-emit-package=sqlglotrs",
    "--quiet",
    "--system-certs",
)


def lock(name: str, *sources: str) -> None:
    """Resolve the sources into one pinned file."""
    target = REQUIREMENTS / f"{name}.txt"
    print(f"locking {target.relative_to(ROOT)}")
    subprocess.run(
        [sys.executable, "-m", "uv", "pip", "compile", *OPTIONS, *sources, "-o", str(target)],
        cwd=ROOT,
        check=True,
    )


if __name__ == "__main__":
    everything = ("--all-extras", "--group", "dev", "-c", "requirements/constraints.in")
    lock("lock", *everything, "pyproject.toml")
    lock("java", "requirements/java.in")
    lock("node", "requirements/node.in")
