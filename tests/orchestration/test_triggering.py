"""Dataset ready → process starts: through the sensor, on a real instance and a real catalog."""

from functools import partial
from pathlib import Path

import pytest
from dagster import DailyPartitionsDefinition, StaticPartitionsDefinition

from floe.client.messages import process_message
from floe.execution.starting import read_page
from floe.orchestration import triggering
from tests.orchestration.nights import FEED, MONDAY, RUN_KEY, TUESDAY, WEDNESDAY, Night, open_night
from tests.orchestration.projects import load_parts, make_project

pytestmark = pytest.mark.slow

CHAIN = f"""
datasets:
  raw.trades: {FEED}
  risk.totals: {{}}
  risk.report: {{}}
processes:
  totals:
    trigger: dataset
    inputs: {{trades: raw.trades}}
    outputs: {{t: risk.totals}}
    sql: select 1
  report:
    trigger: MODE
    inputs: {{totals: risk.totals}}
    outputs: {{r: risk.report}}
    sql: select 1
"""


def chain(mode: str = "dataset") -> str:
    """Trades make totals, and totals a report."""
    return CHAIN.replace("MODE", mode)


def two_inputs(ref: str) -> str:
    """A process that reads a feed of its date, and another one by some mapping."""
    return f"""
    datasets: {{raw.trades: {FEED}, raw.ref: {FEED}, risk.totals: {{}}}}
    processes:
      totals:
        trigger: dataset
        inputs: {{trades: raw.trades, ref: {ref}}}
        outputs: {{t: risk.totals}}
        sql: select 1
    """


def test_a_feed_that_is_registered_starts_a_process_and_its_output_the_next(
    tmp_path: Path,
) -> None:
    with open_night(tmp_path, chain()) as night:
        assert night.tick() == []
        night.register("raw.trades", TUESDAY, "2026-09-01")
        assert night.tick() == ["totals 2026-09-01"]
        assert night.tick() == ["report 2026-09-01"]
        assert night.tick() == []


def test_the_same_feed_registered_again_starts_nothing(tmp_path: Path) -> None:
    with open_night(tmp_path, chain()) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        assert len(night.settle()) == 2
        night.register("raw.trades", TUESDAY, "2026-09-01")
        assert night.settle() == []


def test_a_rerun_of_an_older_date_cascades_for_that_date_alone(tmp_path: Path) -> None:
    with open_night(tmp_path, chain()) as night:
        for day in (MONDAY, TUESDAY, WEDNESDAY):
            night.register("raw.trades", day, f"{day}")
        assert len(night.settle()) == 6
        night.register("raw.trades", MONDAY, "2026-08-31.corrected")
        assert night.settle() == ["totals 2026-08-31", "report 2026-08-31"]


def test_a_daemon_that_dies_before_it_keeps_its_cursor_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    with open_night(tmp_path, chain()) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        # It dies before anything was made of what was asked for …
        (asked,) = night.ask(keep_cursor=False)
        # … and after the run was made, of which the catalog knows nothing yet.
        night.instance.create_run_for_job(
            night.jobs[asked.job_name or ""], tags={**asked.tags, RUN_KEY: str(asked.run_key)}
        )
        (again,) = night.ask()
        assert again.run_key == asked.run_key
        assert not night.start(again)
        assert night.ask() == []


def test_the_sensor_goes_on_from_its_cursor_after_a_restart(tmp_path: Path) -> None:
    with open_night(tmp_path, chain()) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        night.tick()
        fresh = Night(night.site, night.instance, cursor=night.cursor)
        fresh.register("raw.trades", WEDNESDAY, "2026-09-02")
        assert sorted(fresh.settle()) == [
            "report 2026-09-01",
            "report 2026-09-02",
            "totals 2026-09-02",
        ]


def test_a_sensor_that_lost_its_cursor_starts_nothing_twice(tmp_path: Path) -> None:
    with open_night(tmp_path, chain()) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        night.settle()
        night.cursor = None
        assert night.settle() == []


def test_a_process_that_its_scheduler_starts_is_only_watched(tmp_path: Path) -> None:
    with open_night(tmp_path, chain("process")) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        assert night.settle() == ["totals 2026-09-01"]


def test_a_hybrid_process_starts_unless_its_schedule_was_faster(tmp_path: Path) -> None:
    with open_night(tmp_path, chain("hybrid")) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        assert night.settle() == ["totals 2026-09-01", "report 2026-09-01"]
        night.register("raw.trades", WEDNESDAY, "2026-09-02")
        assert night.tick() == ["totals 2026-09-02"]
        night.jobs["floe__report"].execute_in_process(
            instance=night.instance, tags={"floe/business_date": "2026-09-02"}
        )
        assert night.settle() == []


def test_a_run_that_failed_is_asked_for_again_only_when_an_input_changes(tmp_path: Path) -> None:
    with open_night(tmp_path, chain(), broken={"totals"}) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        assert night.settle() == ["totals 2026-09-01"]
        # Another reader of the log, or a reset cursor: the key is the same.
        night.cursor = None
        assert night.settle() == []
        night.broken.clear()
        night.register("raw.trades", TUESDAY, "2026-09-01.corrected")
        assert night.settle() == ["totals 2026-09-01", "report 2026-09-01"]


def test_history_starts_nothing(tmp_path: Path) -> None:
    with open_night(tmp_path, chain()) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01", historical=True)
        assert night.settle() == []


def test_a_process_starts_once_all_its_inputs_are_there(tmp_path: Path) -> None:
    with open_night(tmp_path, two_inputs("raw.ref")) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        assert night.settle() == []
        night.register("raw.ref", WEDNESDAY, "2026-09-02")
        assert night.settle() == []
        night.register("raw.ref", TUESDAY, "2026-09-01")
        assert night.settle() == ["totals 2026-09-01"]


def test_the_latest_version_is_read_as_of_each_date(tmp_path: Path) -> None:
    with open_night(tmp_path, two_inputs("{dataset: raw.ref, mapping: latest}")) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        night.register("raw.trades", WEDNESDAY, "2026-09-02")
        assert night.settle() == []
        # Both have waited for any version up to their date.
        night.register("raw.ref", MONDAY, "2026-08-31")
        assert sorted(night.settle()) == ["totals 2026-09-01", "totals 2026-09-02"]
        # A correction of before repeats no date that has run.
        night.register("raw.ref", MONDAY, "2026-08-31.corrected")
        assert night.settle() == []
        night.register("raw.ref", WEDNESDAY, "2026-09-02")
        assert night.settle() == ["totals 2026-09-02"]


def test_a_version_of_the_day_before_starts_the_next_day(tmp_path: Path) -> None:
    mapping = "{dataset: raw.ref, mapping: previous_business_day}"
    with open_night(tmp_path, two_inputs(mapping)) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        night.register("raw.ref", TUESDAY, "2026-09-01")
        assert night.settle() == []
        night.register("raw.ref", MONDAY, "2026-08-31")
        assert night.settle() == ["totals 2026-09-01"]


def test_the_business_date_reaches_a_partitioned_job_as_its_key(tmp_path: Path) -> None:
    daily = DailyPartitionsDefinition(start_date="2026-09-01", end_offset=1)
    with open_night(tmp_path, chain(), partitions={"totals": daily}) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        (asked,) = night.ask()
        assert asked.partition_key == "2026-09-01"
        assert asked.tags["floe/business_date"] == "2026-09-01"


def test_a_date_that_partitions_lack_is_said_and_stops_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    daily = DailyPartitionsDefinition(start_date="2026-09-01", end_offset=1)
    with open_night(tmp_path, chain(), partitions={"totals": daily}) as night:
        night.register("raw.trades", MONDAY, "2026-08-31")
        night.register("raw.trades", TUESDAY, "2026-09-01")
        assert [asked.partition_key for asked in night.ask()] == ["2026-09-01"]
        said = capfd.readouterr()
        assert "totals is ready for 2026-08-31, and its partitions have no such date" in (
            said.err + said.out
        )


def test_every_partition_beside_the_date_gets_a_run_of_its_own(tmp_path: Path) -> None:
    regions = StaticPartitionsDefinition(["apac", "emea"])
    with open_night(tmp_path, chain(), partitions={"totals": regions}) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        asked = night.ask()
        assert [one.partition_key for one in asked] == ["apac", "emea"]
        assert len({one.run_key for one in asked}) == 2


def test_what_does_not_fit_into_an_evaluation_comes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triggering, "MOST_PAGES", 1)
    monkeypatch.setattr(triggering, "read_page", partial(read_page, size=2))
    with open_night(tmp_path, chain()) as night:
        for day in range(1, 8):
            night.register("raw.trades", TUESDAY.replace(day=day), f"2026-09-0{day}")
        ran = [night.tick() for _ in range(12)]
        assert all(len(some) <= 2 for some in ran)
        assert len([one for some in ran for one in some if one.startswith("totals")]) == 7


def test_a_version_that_a_foreign_job_writes_counts_like_one_that_is_registered(
    tmp_path: Path,
) -> None:
    with open_night(tmp_path, chain()) as night:
        night.send(
            process_message(
                "AUTOSYS/load_trades", "SUCCESS", business_date=TUESDAY, outputs=["raw.trades"]
            )
        )
        assert night.tick() == ["totals 2026-09-01"]


@pytest.mark.parametrize(
    ("platform", "deaths"),
    [("{}", "2"), ("orchestrator: {retries: {attempts: 0}}", "0")],
)
def test_a_run_begins_again_whose_process_died_unless_the_platform_wants_none(
    tmp_path: Path, platform: str, deaths: str
) -> None:
    folder = make_project(tmp_path, chain(), {"platform.yaml": platform})
    job = load_parts(folder).definitions().resolve_job_def("floe__totals")
    assert job.tags["dagster/max_retries"] == deaths
