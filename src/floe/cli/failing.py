"""What a command says of its own failure to a program: one JSON document, like its answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from floe.cli.output import print_json
from floe.errors import FloeError


@contextmanager
def failures_as_json(wanted: bool, **facts: Any) -> Iterator[dict[str, Any]]:
    """Print why it failed to standard output, with the facts that were found until then.

    The error goes on: people read it on standard error, and the exit code stays what it was.
    """
    try:
        yield facts
    except FloeError as error:
        if wanted:
            known = {name: value for name, value in facts.items() if value is not None}
            print_json({"ok": False, **known, "error": type(error).__name__, "reason": str(error)})
        raise
