"""Datasets start processes under `floe up`, whatever is killed in the middle of a run.

Real services, Dagster's own daemon and Spark. Each test has its own business date.
"""

from collections.abc import Iterator

import pytest

from tests.e2e.nights import Night

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

# Long enough to kill something in the middle.
SECONDS = 6


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    """The project, with all services up."""
    night = Night(tmp_path_factory.mktemp("night"))
    night.write()
    try:
        night.up()
        yield night
    finally:
        night.floe("down")


def check_computed_once(night: Night, day: str) -> None:
    """Check that each output has one version, written by one run."""
    night.wait_for_versions("risk.report", day)
    night.check_states_agree()
    for process, dataset in (("totals", "risk.totals"), ("report", "risk.report")):
        assert len(night.versions(dataset, day)) == 1, night.describe()
        done = [run for run in night.runs(process, day) if run.status == "SUCCESS"]
        assert len(done) == 1, night.describe()


def test_a_registered_feed_starts_a_process_whose_output_starts_the_next(night: Night) -> None:
    night.deliver("2026-09-01")
    night.register("2026-09-01")
    check_computed_once(night, "2026-09-01")
    assert [run.status for run in night.runs("totals", "2026-09-01")] == ["SUCCESS"]


def test_a_repeated_report_starts_nothing_and_a_correction_only_its_own_date(night: Night) -> None:
    for day in ("2026-09-02", "2026-09-03"):
        night.deliver(day)
        night.register(day)
    for day in ("2026-09-02", "2026-09-03"):
        check_computed_once(night, day)
    night.register("2026-09-03")
    night.deliver("2026-09-02", 99.0)
    night.register("2026-09-02", "corrected")
    # Changes are processed in order: once this one has been processed, so has the one before.
    night.wait_for_versions("risk.report", "2026-09-02", count=2)
    check_computed_once(night, "2026-09-03")
    assert len(night.versions("risk.totals", "2026-09-02")) == 2


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
def test_killing_a_service_in_the_middle_of_a_run_loses_and_repeats_nothing(
    night: Night, service: str, day: str
) -> None:
    night.deliver(day, seconds=SECONDS)
    night.register(day)
    night.wait_running("totals", day)
    night.kill(service)
    check_computed_once(night, day)


def test_the_next_up_completes_a_run_after_everything_was_killed(night: Night) -> None:
    day = "2026-09-11"
    night.deliver(day, seconds=SECONDS)
    night.register(day)
    night.wait_running("totals", day)
    night.kill_all()
    night.up()
    check_computed_once(night, day)


def test_killing_everything_right_after_a_report_loses_nothing(night: Night) -> None:
    day = "2026-09-14"
    night.deliver(day)
    night.register(day)
    night.kill_all()
    night.up()
    check_computed_once(night, day)
