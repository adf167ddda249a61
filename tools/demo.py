"""The demo: what a newcomer would type, typed for them in demo/credit_risk."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "demo" / "credit_risk"
COMMANDS = (
    ("validate",),
    ("compile",),
    ("register",),
    ("datasets",),
    ("processes",),
    ("dataset", "credit.exposure"),
    ("lineage", "credit.exposure", "--upstream"),
)


def main() -> int:
    """Run each command and stop at the first that fails."""
    print(
        f"The demo project is {PROJECT.relative_to(ROOT)}; its catalog is a SQLite file in .floe/."
    )
    for command in COMMANDS:
        print(f"\n$ floe {' '.join(command)}", flush=True)
        done = subprocess.run(
            [str(Path(sys.executable).parent / "floe"), *command], cwd=PROJECT, check=False
        )
        if done.returncode:
            print(f"floe {command[0]} failed with exit code {done.returncode}.")
            return done.returncode
    print("\nLook around yourself: cd demo/credit_risk && ../../.venv/bin/floe --help")
    return 0


if __name__ == "__main__":
    sys.exit(main())
