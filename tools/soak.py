"""Run the tests marked `soak` for many rounds; write the results to docs/soak.md."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

from floe import clock

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "soak.md"
ROUNDS = os.environ.get("FLOE_SOAK_ROUNDS", "100")


def main() -> int:
    """Run the soak tests and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        environment = {**os.environ, "FLOE_SOAK_ROUNDS": ROUNDS}
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-m",
                "soak",
                "--timeout=7200",
                f"--junitxml={report}",
            ],
            cwd=ROOT,
            env=environment,
            check=False,
        )
        PAGE.write_text(page(ET.parse(report).getroot()))
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return done.returncode


def page(report: ET.Element) -> str:
    """Return the page with the results."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    lines = [
        "# Results of the last soak test",
        "",
        f"{clock.now():%Y-%m-%d %H:%M} UTC, at commit {commit.strip()}, "
        f"{ROUNDS} rounds per test (`make soak`).",
        "",
        "| test | seconds | result |",
        "|---|---|---|",
    ]
    for case in report.iter("testcase"):
        bad = any(case.find(kind) is not None for kind in ("failure", "error"))
        seconds = float(case.get("time", 0))
        name = case.get("name", "").removeprefix("test_").replace("_", " ")
        lines.append(f"| {name} | {seconds:.0f} | {'FAILED' if bad else 'passed'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
