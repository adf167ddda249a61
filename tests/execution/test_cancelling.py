"""Work under way is ended from another thread, and says why."""

from datetime import timedelta

import pytest

from floe.execution.cancelling import Cancellation, CancelledError, RunTimeoutError

STOPPED = CancelledError("It was stopped.")


def test_what_is_to_be_done_at_a_cancellation_is_done_once() -> None:
    done: list[str] = []
    cancellation = Cancellation()
    cancellation.on_cancel(lambda: done.append("interrupted"))
    cancellation.cancel(STOPPED)
    cancellation.cancel(CancelledError("again"))
    assert done == ["interrupted"]
    with pytest.raises(CancelledError, match="It was stopped"):
        cancellation.check()


def test_what_comes_too_late_is_done_at_once() -> None:
    done: list[str] = []
    cancellation = Cancellation()
    cancellation.cancel(STOPPED)
    cancellation.on_cancel(lambda: done.append("late"))
    assert done == ["late"]


def test_a_child_ends_with_its_parent_and_can_end_alone() -> None:
    parent = Cancellation()
    first, second = parent.child(), parent.child()
    first.cancel(STOPPED)
    parent.check()
    parent.cancel(STOPPED)
    with pytest.raises(CancelledError):
        second.check()


def test_a_timeout_cancels_and_one_that_is_not_reached_does_not() -> None:
    cancellation = Cancellation()
    with cancellation.limited("totals", timedelta(seconds=0.05)), pytest.raises(RunTimeoutError):
        cancellation.wait(5)
    quick = Cancellation()
    with quick.limited("totals", timedelta(hours=1)):
        pass
    quick.check()
