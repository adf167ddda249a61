"""Hold Python's garbage collector back while many objects are made that all stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Read and validate without collections in between.

    A big project makes a million objects, none of them garbage. The collector would walk
    them all again and again while they grow, and take more time than the work itself.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
