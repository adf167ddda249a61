"""`python -m floe.services.spark`: Spark as a service that runs in the foreground.

The server is nobody's child and is shared with every command. This process starts it, ends when
the server has died, and takes it along when it is stopped itself.
"""

import signal
import sys
import time
from types import FrameType
from typing import NoReturn

from floe.execution.site import Site
from floe.execution.spark.jvm import end_jvm
from floe.execution.spark.place import ServerPlace
from floe.execution.spark.server import ensure_server, server_status, stop_server
from floe.execution.spark.settings import is_foreign
from floe.execution.workspace import load_site
from floe.settings import find_project

LOOK_SECONDS = 1.0


def keep_spark(site: Site) -> None:
    """Start the server and stay until it is gone. Another command may start it anew meanwhile."""
    ensure_server(site, _say)
    _say("Spark is ready")
    while server_status(site).state in ("running", "starting"):
        time.sleep(LOOK_SECONDS)


def end_spark(site: Site) -> None:
    """End the server of a project, also one whose start was broken off at any moment."""
    if is_foreign(site.compute()):
        return
    end_jvm(ServerPlace(site))
    stop_server(site)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    # Only once: the end must not be broken off by those who insist.
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)
    raise SystemExit(0)


def main() -> None:
    """Keep Spark running for the project in FLOE_PROJECT."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    site = load_site(find_project())
    try:
        keep_spark(site)
    except SystemExit:
        end_spark(site)
        raise
    said = server_status(site).said
    raise SystemExit("Spark has died. " + " ".join(said))


if __name__ == "__main__":
    main()
