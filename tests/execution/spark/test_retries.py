"""How long a client waits for a server: not at all for one that is dead."""

import pytest

from floe.execution.spark.retries import ShortPolicy


@pytest.mark.parametrize(("is_gone", "waits"), [(False, [200, 800]), (True, [0, 0])])
def test_a_dead_server_is_not_waited_for(is_gone: bool, waits: list[int]) -> None:
    state = ShortPolicy(lambda: is_gone).to_state()
    assert [state.next_attempt() for _ in waits] == waits


def test_a_client_gives_up_in_the_end() -> None:
    state = ShortPolicy(lambda: True).to_state()
    assert [state.next_attempt() for _ in range(6)] == [0] * 5 + [None]
