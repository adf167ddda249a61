"""The garbage collector is held back while much is made, and goes on as before."""

import gc

from floe.spec.collector import collector_paused


def test_collector_waits_until_all_is_made() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_was_made_meanwhile_is_among_the_old() -> None:
    with collector_paused():
        made: list[list[object]] = [[] for _ in range(10)]
    old = {id(one) for one in gc.get_objects(generation=2)}
    assert {id(one) for one in made} <= old


def test_what_somebody_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with collector_paused():
            pass
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()
