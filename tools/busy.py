"""Run the tests that start servers three times in a row under CPU load."""

import os
import subprocess
import sys
from contextlib import ExitStack

from tools.processes import running

ROUNDS = int(os.environ.get("FLOE_BUSY_ROUNDS", "3"))
LOOPS = 2
LOOP = [sys.executable, "-c", "while True: pass"]
STARTS_SERVERS = (
    "tests/api/test_server.py",
    "tests/cli/test_api.py",
    "tests/cli/test_backfill.py",
    "tests/cli/test_spark.py",
    "tests/cli/test_up.py",
    "tests/client/test_real_api.py",
    "tests/e2e",
    "tests/execution/spark",
    "tests/orchestration/launcher",
    "tests/orchestration/sensors/test_daemon.py",
    "tests/orchestration/test_scheduler.py",
    "tests/services",
)


def main() -> int:
    """Run the rounds; stop at the first that fails."""
    workers = ["-n", os.environ.get("WORKERS", "3"), "--dist", "loadfile"]
    command = [sys.executable, "-m", "pytest", "-q", *workers, *STARTS_SERVERS, *sys.argv[1:]]
    with ExitStack() as stack:
        for _ in range(LOOPS):
            stack.enter_context(running(LOOP))
        for attempt in range(1, ROUNDS + 1):
            print(f"round {attempt} of {ROUNDS}, with {LOOPS} busy loops", flush=True)
            code = subprocess.run(command, check=False).returncode
            if code:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
