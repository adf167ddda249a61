"""Spark as a service in the foreground: `python -m floe.services.spark_service`.

The Spark server is not a child of this process: every command shares it. This process starts it,
ends when the server dies, and stops the server when it is stopped itself.
"""

import signal
import sys
import time
from types import FrameType
from typing import NoReturn

from floe.execution.site import Site
from floe.execution.spark.jvm import end_jvm
from floe.execution.spark.server import ensure_server, server_status, stop_server
from floe.execution.spark.server_files import ServerFiles
from floe.execution.spark.server_settings import is_foreign
from floe.execution.workspace import load_site
from floe.settings import find_project

LOOK_SECONDS = 1.0


def keep_spark(site: Site) -> None:
    """Start the server and wait until it ends; others may restart it meanwhile."""
    ensure_server(site, _say)
    _say("Spark is ready")
    while server_status(site).state in ("running", "starting"):
        time.sleep(LOOK_SECONDS)


def end_spark(site: Site) -> None:
    """Stop a project's server, even if its start was interrupted."""
    if is_foreign(site.compute()):
        return
    end_jvm(ServerFiles(site))
    stop_server(site)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _stop(signum: int, frame: FrameType | None) -> NoReturn:
    # Only once: further signals must not interrupt the shutdown.
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    raise SystemExit(0)


def main() -> None:
    """Keep Spark running for the project in FLOE_PROJECT."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, _stop)
    site = load_site(find_project())
    try:
        keep_spark(site)
    except SystemExit:
        end_spark(site)
        raise
    last_output = server_status(site).last_output
    raise SystemExit("Spark has died. " + " ".join(last_output))


if __name__ == "__main__":
    main()
