"""Ready datasets start processes, with a real Dagster instance and catalog."""

from functools import partial
from pathlib import Path

import pytest
from dagster import DailyPartitionsDefinition, StaticPartitionsDefinition

from floe.client.messages import process_message
from floe.execution.trigger_decisions import read_page
from floe.orchestration import dataset_triggers
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
    """A chain: trades → totals → report."""
    return CHAIN.replace("MODE", mode)


def two_inputs(ref: str) -> str:
    """A process that reads a feed of its date, and another by a mapping."""
    return f"""
    datasets: {{raw.trades: {FEED}, raw.ref: {FEED}, risk.totals: {{}}}}
    processes:
      totals:
        trigger: dataset
        inputs: {{trades: raw.trades, ref: {ref}}}
        outputs: {{t: risk.totals}}
        sql: select 1
    """


def test_a_registered_feed_starts_a_process_and_its_output_starts_the_next(
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


def test_a_rerun_of_an_older_date_cascades_for_that_date_only(tmp_path: Path) -> None:
    with open_night(tmp_path, chain()) as night:
        for day in (MONDAY, TUESDAY, WEDNESDAY):
            night.register("raw.trades", day, f"{day}")
        assert len(night.settle()) == 6
        night.register("raw.trades", MONDAY, "2026-08-31.corrected")
        assert night.settle() == ["totals 2026-08-31", "report 2026-08-31"]


def test_a_crash_before_the_cursor_is_stored_causes_no_lost_or_duplicate_run(
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


def test_the_sensor_continues_from_its_cursor_after_a_restart(tmp_path: Path) -> None:
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


def test_a_lost_cursor_starts_nothing_twice(tmp_path: Path) -> None:
    with open_night(tmp_path, chain()) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        night.settle()
        night.cursor = None
        assert night.settle() == []


def test_a_process_with_trigger_process_is_not_started(tmp_path: Path) -> None:
    with open_night(tmp_path, chain("process")) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        assert night.settle() == ["totals 2026-09-01"]


def test_a_hybrid_process_starts_unless_its_schedule_started_it_first(tmp_path: Path) -> None:
    with open_night(tmp_path, chain("hybrid")) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        assert night.settle() == ["totals 2026-09-01", "report 2026-09-01"]
        night.register("raw.trades", WEDNESDAY, "2026-09-02")
        assert night.tick() == ["totals 2026-09-02"]
        night.jobs["floe__report"].execute_in_process(
            instance=night.instance, tags={"floe/business_date": "2026-09-02"}
        )
        assert night.settle() == []


def test_a_failed_run_is_requested_again_only_when_an_input_changes(tmp_path: Path) -> None:
    with open_night(tmp_path, chain(), broken={"totals"}) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        assert night.settle() == ["totals 2026-09-01"]
        # With another reader or a reset cursor, the run key is the same.
        night.cursor = None
        assert night.settle() == []
        night.broken.clear()
        night.register("raw.trades", TUESDAY, "2026-09-01.corrected")
        assert night.settle() == ["totals 2026-09-01", "report 2026-09-01"]


def test_history_starts_nothing(tmp_path: Path) -> None:
    with open_night(tmp_path, chain()) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01", historical=True)
        assert night.settle() == []


def test_a_process_starts_when_all_inputs_exist(tmp_path: Path) -> None:
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
        # Both waited for a version up to their date.
        night.register("raw.ref", MONDAY, "2026-08-31")
        assert sorted(night.settle()) == ["totals 2026-09-01", "totals 2026-09-02"]
        # A correction of an earlier date does not repeat later dates that have run.
        night.register("raw.ref", MONDAY, "2026-08-31.corrected")
        assert night.settle() == []
        night.register("raw.ref", WEDNESDAY, "2026-09-02")
        assert night.settle() == ["totals 2026-09-02"]


def test_a_version_of_the_previous_day_starts_the_next_day(tmp_path: Path) -> None:
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


def test_a_date_without_partition_is_logged_and_stops_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    daily = DailyPartitionsDefinition(start_date="2026-09-01", end_offset=1)
    with open_night(tmp_path, chain(), partitions={"totals": daily}) as night:
        night.register("raw.trades", MONDAY, "2026-08-31")
        night.register("raw.trades", TUESDAY, "2026-09-01")
        assert [asked.partition_key for asked in night.ask()] == ["2026-09-01"]
        message = capfd.readouterr()
        assert "totals is ready for 2026-08-31 but not started: its partitions do not include" in (
            message.err + message.out
        )


def test_every_partition_of_the_date_gets_its_own_run(tmp_path: Path) -> None:
    regions = StaticPartitionsDefinition(["apac", "emea"])
    with open_night(tmp_path, chain(), partitions={"totals": regions}) as night:
        night.register("raw.trades", TUESDAY, "2026-09-01")
        asked = night.ask()
        assert [item.partition_key for item in asked] == ["apac", "emea"]
        assert len({item.run_key for item in asked}) == 2


def test_requests_beyond_the_limit_follow_in_the_next_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset_triggers, "MOST_PAGES", 1)
    monkeypatch.setattr(dataset_triggers, "read_page", partial(read_page, size=2))
    with open_night(tmp_path, chain()) as night:
        for day in range(1, 8):
            night.register("raw.trades", TUESDAY.replace(day=day), f"2026-09-0{day}")
        ran = [night.tick() for _ in range(12)]
        assert all(len(some) <= 2 for some in ran)
        assert len([item for some in ran for item in some if item.startswith("totals")]) == 7


def test_a_version_that_a_foreign_job_reports_counts_like_a_registered_one(
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
def test_a_killed_run_is_retried_unless_the_platform_disables_retries(
    tmp_path: Path, platform: str, deaths: str
) -> None:
    folder = make_project(tmp_path, chain(), {"platform.yaml": platform})
    job = load_parts(folder).definitions().resolve_job_def("floe__totals")
    assert job.tags["dagster/max_retries"] == deaths
