"""Run all static checks of the code in parallel and report all results."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BIN = Path(sys.executable).parent
CHECKS = {
    "format": ["ruff", "format", "--check", "--quiet"],
    "lint": ["ruff", "check", "--quiet"],
    "types": ["mypy", "--no-error-summary"],
    "import contracts": ["lint-imports", "--no-logo"],
}


def run(name: str) -> tuple[str, int, str, float]:
    """Run a check; return its name, exit code, output and seconds."""
    program, *arguments = CHECKS[name]
    started = time.monotonic()
    done = subprocess.run(
        [str(BIN / program), *arguments], capture_output=True, text=True, check=False
    )
    return name, done.returncode, done.stdout + done.stderr, time.monotonic() - started


def main() -> int:
    """Run all checks in parallel; print the output of those that failed."""
    failed = 0
    with ThreadPoolExecutor() as pool:
        for name, code, output, seconds in pool.map(run, CHECKS):
            print(f"{name}: {'ok' if code == 0 else 'FAILED'} ({seconds:.0f} s)", flush=True)
            if code:
                failed += 1
                print(output)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
