"""Run one nightly batch of demo/credit_risk, with the commands that a new user would type."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ROOT / "demo" / "credit_risk"
DAY = "2026-09-01"
COMMANDS = (
    ("validate",),
    ("compile",),
    ("register",),
    ("run", "--all", "--date", DAY),
    ("datasets",),
    ("dataset", "credit.exposure"),
    ("versions", "credit.exposure"),
    ("read", "reporting.large_exposures", "--limit", "5"),
    ("lineage", "credit.exposure", "--columns"),
    ("spark", "stop"),
)


def main() -> int:
    """Run each command, stop at the first that fails, and stop Spark in any case."""
    print(
        f"The demo project is {PROJECT.relative_to(ROOT)}; its catalog is a SQLite file in .floe/."
    )
    print("\n$ python make_data.py", flush=True)
    subprocess.run([sys.executable, "make_data.py"], cwd=PROJECT, check=True)
    for command in COMMANDS:
        print(f"\n$ floe {' '.join(command)}", flush=True)
        code = floe(*command)
        if code:
            print(f"floe {command[0]} failed with exit code {code}.")
            floe("spark", "stop")
            return code
    print("\nTry more commands: cd demo/credit_risk && ../../.venv/bin/floe --help")
    return 0


def floe(*command: str) -> int:
    """Run a command in the project; return its exit code."""
    program = str(Path(sys.executable).parent / "floe")
    return subprocess.run([program, *command], cwd=PROJECT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
