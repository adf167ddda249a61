"""Dataset ready → process starts, under `floe up`, whatever is killed in the middle of a run.

Real services, Dagster's own daemon and Spark. Each test has a business date of its own.
"""

from collections.abc import Iterator

import pytest

from tests.e2e.nights import Night

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

# Long enough for a kill to come in the middle.
SECONDS = 6


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    """The project, up."""
    night = Night(tmp_path_factory.mktemp("night"))
    night.write()
    try:
        night.up()
        yield night
    finally:
        night.floe("down")


def check_made_once(night: Night, day: str) -> None:
    """The feed has made one version of each output, by one run each."""
    night.wait_made("risk.report", day)
    night.check_states_agree()
    for process, dataset in (("totals", "risk.totals"), ("report", "risk.report")):
        assert len(night.made(dataset, day)) == 1, night.story()
        done = [one for one in night.runs(process, day) if one.status == "SUCCESS"]
        assert len(done) == 1, night.story()


def test_a_registered_feed_starts_a_spark_process_and_its_output_the_next(night: Night) -> None:
    night.deliver("2026-09-01")
    night.register("2026-09-01")
    check_made_once(night, "2026-09-01")
    assert [one.status for one in night.runs("totals", "2026-09-01")] == ["SUCCESS"]


def test_the_same_again_starts_nothing_and_a_correction_its_own_date_alone(night: Night) -> None:
    for day in ("2026-09-02", "2026-09-03"):
        night.deliver(day)
        night.register(day)
    for day in ("2026-09-02", "2026-09-03"):
        check_made_once(night, day)
    night.register("2026-09-03")
    night.deliver("2026-09-02", 99.0)
    night.register("2026-09-02", "corrected")
    # Changes are taken in their order: when this one has come through, so has the one before it.
    night.wait_made("risk.report", "2026-09-02", count=2)
    check_made_once(night, "2026-09-03")
    assert len(night.made("risk.totals", "2026-09-02")) == 2


@pytest.mark.parametrize(
    ("service", "day"),
    [
        ("daemon", "2026-09-04"),
        ("code", "2026-09-07"),
        ("api", "2026-09-08"),
        ("workers", "2026-09-09"),
        ("spark", "2026-09-10"),
    ],
)
def test_a_service_killed_in_the_middle_of_a_run_loses_and_doubles_nothing(
    night: Night, service: str, day: str
) -> None:
    night.deliver(day, seconds=SECONDS)
    night.register(day)
    night.wait_running("totals", day)
    night.kill(service)
    check_made_once(night, day)


def test_all_killed_in_the_middle_of_a_run_is_made_good_by_the_next_up(night: Night) -> None:
    day = "2026-09-11"
    night.deliver(day, seconds=SECONDS)
    night.register(day)
    night.wait_running("totals", day)
    night.kill_all()
    night.up()
    check_made_once(night, day)


def test_all_killed_right_after_a_feed_was_registered_loses_nothing(night: Night) -> None:
    day = "2026-09-14"
    night.deliver(day)
    night.register(day)
    night.kill_all()
    night.up()
    check_made_once(night, day)
