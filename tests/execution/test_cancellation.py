"""Running work is cancelled from another thread, with a reason."""

from datetime import timedelta

import pytest

from floe.execution.cancellation import Cancellation, CancelledError, RunTimeoutError

STOPPED = CancelledError("The run was stopped.")


def test_cancel_actions_run_once() -> None:
    done: list[str] = []
    cancellation = Cancellation()
    cancellation.on_cancel(lambda: done.append("interrupted"))
    cancellation.cancel(STOPPED)
    cancellation.cancel(CancelledError("again"))
    assert done == ["interrupted"]
    with pytest.raises(CancelledError, match="The run was stopped"):
        cancellation.check()


def test_an_action_added_after_cancellation_runs_immediately() -> None:
    done: list[str] = []
    cancellation = Cancellation()
    cancellation.cancel(STOPPED)
    cancellation.on_cancel(lambda: done.append("late"))
    assert done == ["late"]


def test_a_child_is_cancelled_with_its_parent_or_alone() -> None:
    parent = Cancellation()
    first, second = parent.child(), parent.child()
    first.cancel(STOPPED)
    parent.check()
    parent.cancel(STOPPED)
    with pytest.raises(CancelledError):
        second.check()


def test_only_an_expired_timeout_cancels() -> None:
    cancellation = Cancellation()
    with cancellation.limited("totals", timedelta(seconds=0.05)), pytest.raises(RunTimeoutError):
        cancellation.wait(5)
    quick = Cancellation()
    with quick.limited("totals", timedelta(hours=1)):
        pass
    quick.check()
