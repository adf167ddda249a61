"""`python -m floe.client deliver`: for hosts without the floe command."""

import sys

from floe.client.reporter import Client, describe_queue

USAGE = "usage: python -m floe.client deliver | status"


def main(arguments: list[str]) -> int:
    """Deliver spooled reports, or print how many are waiting."""
    client = Client()
    if arguments == ["deliver"]:
        counts = client.deliver()
        print(f"{counts.delivered} delivered, {counts.refused} refused, {counts.waiting} waiting")  # noqa: T201
        if counts.reason:
            print(counts.reason, file=sys.stderr)  # noqa: T201
        return 75 if counts.waiting else 0
    if arguments == ["status"]:
        spool = client.spool
        waiting, refused = spool.count_waiting(), spool.count_refused()
        print(f"{spool.folder}: {waiting} waiting, {refused} refused")  # noqa: T201
        for other in spool.others():
            print(describe_queue(other))  # noqa: T201
        return 0
    print(USAGE, file=sys.stderr)  # noqa: T201
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
