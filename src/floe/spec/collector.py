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
            _let_age()
            gc.enable()


def _let_age() -> None:
    """Count all that there is among the old: it is looked at seldom, and not thrice before that.

    To freeze and thaw is the only door to that, and thaws what somebody else has frozen.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()
