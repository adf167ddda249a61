"""Schedules of floe.yaml: when they tick, and which runs a tick requests."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from dagster import (
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    AutomationCondition,
    DagsterInstance,
    DefaultScheduleStatus,
    Definitions,
    DynamicPartitionsDefinition,
    MultiPartitionsDefinition,
    RunRequest,
    ScheduleDefinition,
    StaticPartitionsDefinition,
    TimeWindowPartitionsDefinition,
    asset,
    build_schedule_context,
    multi_asset,
)

# Dagster has no public function for the ticks of a schedule; its daemon uses this one.
from dagster._utils.schedules import cron_string_iterator

from floe.orchestration.jobs import build_jobs
from floe.orchestration.loading import Parts, load
from floe.orchestration.schedules import build_schedules
from floe.spec.findings import SpecError
from floe.spec.identity import BUSINESS_DATE_TAG
from tests.orchestration.projects import make_project

BERLIN = ZoneInfo("Europe/Berlin")


def daily(zone: str = "UTC", start: str = "2026-01-01") -> TimeWindowPartitionsDefinition:
    """Return daily partitions in which today's key exists today."""
    return TimeWindowPartitionsDefinition(
        start=start, cron_schedule="0 0 * * *", fmt="%Y-%m-%d", timezone=zone, end_offset=1
    )


REGIONS = StaticPartitionsDefinition(["eu", "us"])


def an_asset(name: str, **facts: Any) -> AssetsDefinition:
    def made() -> None: ...

    defined: AssetsDefinition = asset(key=name.split("."), **facts)(made)
    return defined


ORDERS = an_asset("bronze.orders")


class Shop:
    """A project with a job `nightly` of all assets, and its schedule `night`."""

    def __init__(self, folder: Path, *assets: AssetsDefinition | AssetSpec, **more: str) -> None:
        schedule = {"cron_schedule": '"0 6 * * *"', **more}
        written = ", ".join(f"{key}: {value}" for key, value in schedule.items())
        floe_yaml = f"""
        timezone: Europe/Berlin
        orchestration:
          jobs:
            nightly: {{type: batch, selection: ["*"]}}
          schedules:
            night: {{job: nightly, {written}}}
        """
        loading = load(make_project(folder, f"name: shop\n{_dedented(floe_yaml)}"))
        parts = build_schedules(loading, build_jobs(loading, Parts(assets=assets or (ORDERS,))))
        self.definitions = parts.definitions()
        Definitions.validate_loadable(self.definitions)
        self.folder = folder

    @property
    def schedule(self) -> ScheduleDefinition:
        return self.definitions.get_repository_def().get_schedule_def("night")

    def tick(
        self, at: datetime, dynamic: Sequence[str] | None = None
    ) -> tuple[Sequence[RunRequest], str | None]:
        """Return the run requests of a tick, or why it is skipped."""
        with ExitStack() as opened:
            instance = None
            if dynamic is not None:
                instance = opened.enter_context(DagsterInstance.local_temp(str(self.folder)))
                instance.add_dynamic_partitions("files", list(dynamic))
            context = build_schedule_context(
                instance=instance,
                scheduled_execution_time=at,
                repository_def=self.definitions.get_repository_def(),
            )
            result = self.schedule.evaluate_tick(opened.enter_context(context))
        return result.run_requests or [], result.skip_message

    def keys(self, at: datetime, dynamic: Sequence[str] | None = None) -> list[str | None]:
        return [request.partition_key for request in self.tick(at, dynamic)[0]]


def _dedented(text: str) -> str:
    return "\n".join(line.removeprefix("        ") for line in text.splitlines())


def berlin(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=BERLIN)  # type: ignore[arg-type, misc]


def ticks(schedule: ScheduleDefinition, first: datetime, days: int) -> list[str]:
    """Return the local times at which a schedule ticks on some days."""
    end = first + timedelta(days=days)
    result: Iterator[datetime] = cron_string_iterator(
        first.timestamp(), str(schedule.cron_schedule), schedule.execution_timezone
    )
    return [
        item.astimezone(BERLIN).strftime("%d %H:%M%z")
        for item in takewhile(lambda t: t < end, result)
    ]


def test_a_schedule_starts_its_job_at_its_time(tmp_path: Path) -> None:
    shop = Shop(tmp_path, cron_schedule='"0 6 * * 1-5"')
    assert shop.schedule.job_name == "nightly"
    assert ticks(shop.schedule, berlin(2026, 9, 3), days=5) == [
        "03 06:00+0200",
        "04 06:00+0200",
        "07 06:00+0200",
    ]
    (request,), skipped = shop.tick(berlin(2026, 9, 3, 6))
    assert skipped is None
    assert request.asset_selection is None
    result = shop.definitions.resolve_job_def("nightly").execute_in_process(tags=request.tags)
    assert [
        asset_materialization_event.asset_key
        for asset_materialization_event in result.get_asset_materialization_events()
    ] == [ORDERS.key]


@pytest.mark.parametrize("macro", ["@hourly", "@daily", "@midnight", "@weekly", "@annually"])
def test_a_schedule_may_be_written_as_a_macro(tmp_path: Path, macro: str) -> None:
    shop = Shop(tmp_path, cron_schedule=f'"{macro}"')
    assert ticks(shop.schedule, berlin(2026, 12, 28), days=7)


def test_a_schedule_has_the_projects_zone_unless_it_names_one(tmp_path: Path) -> None:
    assert Shop(tmp_path / "a").schedule.execution_timezone == "Europe/Berlin"
    other = Shop(tmp_path / "b", timezone="America/New_York").schedule
    assert other.execution_timezone == "America/New_York"
    assert ticks(other, berlin(2026, 9, 3), days=1) == ["03 12:00+0200"]


def test_a_schedule_runs_unless_it_is_disabled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, stopped = DefaultScheduleStatus.RUNNING, DefaultScheduleStatus.STOPPED
    assert Shop(tmp_path / "a").schedule.default_status is running
    assert Shop(tmp_path / "b", enabled="false").schedule.default_status is stopped
    by_environment = '"${SCHEDULE_ENABLED:false}"'
    assert Shop(tmp_path / "c", enabled=by_environment).schedule.default_status is stopped
    monkeypatch.setenv("SCHEDULE_ENABLED", "true")
    assert Shop(tmp_path / "c", enabled=by_environment).schedule.default_status is running


def test_the_business_date_of_a_run_is_that_of_the_tick_in_the_schedules_zone(
    tmp_path: Path,
) -> None:
    just_after_midnight = datetime(2026, 9, 2, 22, 30, tzinfo=UTC)
    in_berlin = Shop(tmp_path / "a", cron_schedule='"30 0 * * *"')
    (request,), _ = in_berlin.tick(just_after_midnight)
    assert request.tags[BUSINESS_DATE_TAG] == "2026-09-03"
    in_new_york = Shop(tmp_path / "b", timezone="America/New_York")
    (request,), _ = in_new_york.tick(just_after_midnight)
    assert request.tags[BUSINESS_DATE_TAG] == "2026-09-02"


def test_a_retried_tick_requests_the_same_run(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    (first,), _ = shop.tick(berlin(2026, 9, 3, 6))
    (again,), _ = shop.tick(datetime(2026, 9, 3, 4, tzinfo=UTC))
    (later,), _ = shop.tick(berlin(2026, 9, 4, 6))
    assert first.run_key == again.run_key != later.run_key


def test_latest_is_the_newest_partition_that_exists_at_the_tick(tmp_path: Path) -> None:
    shop = Shop(tmp_path, an_asset("trades", partitions_def=daily("Europe/Berlin")))
    assert shop.keys(berlin(2026, 9, 3, 6)) == ["2026-09-03"]
    # A late tick still has its own date.
    assert shop.keys(berlin(2026, 3, 3, 6)) == ["2026-03-03"]


def test_on_a_non_business_day_latest_is_the_previous_business_day(tmp_path: Path) -> None:
    weekdays = TimeWindowPartitionsDefinition(
        start="2026-01-01",
        cron_schedule="0 0 * * *",
        fmt="%Y-%m-%d",
        timezone="Europe/Berlin",
        end_offset=1,
        exclusions=["0 0 * * 0,6"],
    )
    shop = Shop(tmp_path, an_asset("trades", partitions_def=weekdays))
    assert shop.keys(berlin(2026, 9, 4, 6)) == ["2026-09-04"]
    # On Saturday, Monday has its key already.
    assert shop.keys(berlin(2026, 9, 5, 6)) == ["2026-09-04"]


def test_partitions_keep_their_time_zone_whatever_that_of_the_schedule(tmp_path: Path) -> None:
    new_york = an_asset("trades", partitions_def=daily("America/New_York"))
    shop = Shop(tmp_path, new_york, cron_schedule='"0 3 * * *"')
    # At 3 in Berlin it is still the evening before in New York.
    assert shop.keys(berlin(2026, 9, 3, 3)) == ["2026-09-02"]
    assert shop.keys(berlin(2026, 9, 3, 6)) == ["2026-09-03"]


def test_all_runs_every_existing_partition_separately(tmp_path: Path) -> None:
    trades = an_asset("trades", partitions_def=daily(start="2026-09-01"))
    shop = Shop(tmp_path, trades, partition_selector="all")
    requests, _ = shop.tick(berlin(2026, 9, 3, 6))
    assert [request.partition_key for request in requests] == [
        "2026-09-01",
        "2026-09-02",
        "2026-09-03",
    ]
    assert len({request.run_key for request in requests}) == 3


def test_a_tick_without_existing_partitions_is_skipped_with_a_reason(tmp_path: Path) -> None:
    shop = Shop(tmp_path, an_asset("trades", partitions_def=daily(start="2027-01-01")))
    assert shop.tick(berlin(2026, 9, 3, 6)) == ([], "No partition exists at this time.")


def test_partitions_without_time_are_all_run(tmp_path: Path) -> None:
    shop = Shop(tmp_path, an_asset("sales", partitions_def=REGIONS))
    assert shop.keys(berlin(2026, 9, 3, 6)) == ["eu", "us"]


# Dagster warns about the tags that it sets on such runs itself.
@pytest.mark.filterwarnings(r"ignore:Non-compliant tag keys like \['dagster/partition/")
def test_only_the_time_dimension_has_a_newest_key(tmp_path: Path) -> None:
    both = MultiPartitionsDefinition({"day": daily(start="2026-09-02"), "region": REGIONS})
    sales = an_asset("sales", partitions_def=both)
    at = berlin(2026, 9, 3, 6)
    assert Shop(tmp_path / "a", sales).keys(at) == ["2026-09-03|eu", "2026-09-03|us"]
    everything = Shop(tmp_path / "b", sales, partition_selector="all").keys(at)
    assert set(everything) == {
        f"2026-09-0{day}|{region}" for day in "23" for region in ("eu", "us")
    }


def test_the_newest_dynamic_key_is_the_one_added_last(tmp_path: Path) -> None:
    files = an_asset("files", partitions_def=DynamicPartitionsDefinition(name="files"))
    shop = Shop(tmp_path, files)
    assert shop.keys(berlin(2026, 9, 3, 6), dynamic=["z.csv", "a.csv"]) == ["a.csv"]


def test_when_clocks_go_forward_a_tick_in_the_skipped_hour_happens_at_its_end(
    tmp_path: Path,
) -> None:
    trades = an_asset("trades", partitions_def=daily("Europe/Berlin"))
    shop = Shop(tmp_path, trades, cron_schedule='"30 2 * * *"')
    assert ticks(shop.schedule, berlin(2026, 3, 28), days=3) == [
        "28 02:30+0100",
        "29 03:00+0200",
        "30 02:30+0200",
    ]
    assert shop.keys(berlin(2026, 3, 29, 3)) == ["2026-03-29"]


def test_when_clocks_go_back_a_tick_in_the_repeated_hour_happens_once(tmp_path: Path) -> None:
    trades = an_asset("trades", partitions_def=daily("Europe/Berlin"))
    shop = Shop(tmp_path, trades, cron_schedule='"30 2 * * *"')
    assert ticks(shop.schedule, berlin(2026, 10, 24), days=3) == [
        "24 02:30+0200",
        "25 02:30+0100",
        "26 02:30+0100",
    ]
    assert shop.keys(datetime(2026, 10, 25, 1, 30, tzinfo=UTC)) == ["2026-10-25"]


def test_on_clock_change_days_an_hourly_schedule_ticks_every_existing_hour(
    tmp_path: Path,
) -> None:
    schedule = Shop(tmp_path, cron_schedule='"0 * * * *"').schedule
    spring = datetime(2026, 3, 28, 23, tzinfo=UTC)
    assert len(ticks(schedule, spring, days=1)) == 24
    autumn = [tick for tick in ticks(schedule, berlin(2026, 10, 25), days=1) if " 02:" in tick]
    assert autumn == ["25 02:00+0200", "25 02:00+0100"]


@pytest.mark.parametrize(
    ("switch_day", "hours"), [(berlin(2026, 3, 29), 23), (berlin(2026, 10, 25), 25)]
)
def test_unpartitioned_runs_of_a_clock_change_day_have_its_date(
    tmp_path: Path, switch_day: datetime, hours: int
) -> None:
    shop = Shop(tmp_path, cron_schedule='"0 * * * *"')
    start = switch_day.astimezone(UTC)
    moments = [start + timedelta(hours=hour) for hour in range(hours)]
    requests = [shop.tick(at)[0][0] for at in (moments[0], moments[-1])]
    assert {request.tags[BUSINESS_DATE_TAG] for request in requests} == {f"{switch_day:%Y-%m-%d}"}
    (after,), _ = shop.tick(moments[-1] + timedelta(hours=1))
    assert after.tags[BUSINESS_DATE_TAG] == f"{switch_day.date() + timedelta(days=1)}"


EAGER = AutomationCondition.eager()


def test_automated_assets_are_left_out_of_scheduled_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="floe"):
        shop = Shop(
            tmp_path,
            ORDERS,
            an_asset("silver.orders", automation_condition=EAGER),
            description="Every morning.",
        )
    message = "leaves out silver.orders (automated by automation_condition)."
    assert caplog.messages == [f"The schedule 'night' {message}"]
    assert shop.schedule.description == f"Every morning. L{message[1:]}"
    assert shop.schedule.default_status is DefaultScheduleStatus.RUNNING
    (request,), _ = shop.tick(berlin(2026, 9, 3, 6))
    assert request.asset_selection == (ORDERS.key,)


def test_a_schedule_whose_assets_are_all_automated_is_stopped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="floe"):
        shop = Shop(tmp_path, an_asset("silver.orders", automation_condition=EAGER))
    assert "The schedule 'night' is stopped" in caplog.text
    assert "silver.orders" in caplog.text
    assert "Is stopped" in (shop.schedule.description or "")
    assert shop.schedule.default_status is DefaultScheduleStatus.STOPPED
    # It may still be started by hand.
    requests, skipped = shop.tick(berlin(2026, 9, 3, 6))
    assert requests == []
    assert skipped is not None
    assert "All assets of the job are automated" in skipped


def test_assets_that_cannot_run_without_an_automated_asset_are_left_out_too(tmp_path: Path) -> None:
    @multi_asset(
        specs=[
            AssetSpec(["risk", "exposure"], automation_condition=EAGER),
            AssetSpec(["risk", "limits"]),
        ]
    )
    def risk() -> tuple[None, None]:
        return None, None

    (request,), _ = Shop(tmp_path, ORDERS, risk).tick(berlin(2026, 9, 3, 6))
    assert request.asset_selection == (ORDERS.key,)


def test_the_remaining_assets_decide_whether_a_run_has_a_partition(tmp_path: Path) -> None:
    trades = an_asset("trades", partitions_def=daily(), automation_condition=EAGER)
    (request,), _ = Shop(tmp_path, ORDERS, trades).tick(berlin(2026, 9, 3, 6))
    assert request.partition_key is None
    assert request.tags[BUSINESS_DATE_TAG] == "2026-09-03"
    assert request.asset_selection == (AssetKey(["bronze", "orders"]),)


def test_a_maintenance_job_has_a_weekly_schedule(tmp_path: Path) -> None:
    floe_yaml = """
    orchestration:
      jobs:
        tidy: {type: ops, target_function: vacuum, args: {retention_days: 7}}
      schedules:
        weekly: {job: tidy, cron_schedule: "0 3 * * 0"}
    """
    loading = load(make_project(tmp_path, floe_yaml))
    definitions = build_schedules(loading, build_jobs(loading, Parts())).definitions()
    Definitions.validate_loadable(definitions)
    schedule = definitions.get_repository_def().get_schedule_def("weekly")
    assert schedule.job_name == "tidy"
    assert schedule.default_status is DefaultScheduleStatus.RUNNING
    sundays = ticks(schedule, datetime(2026, 9, 1, tzinfo=UTC), days=14)
    assert sundays == ["06 05:00+0200", "13 05:00+0200"]
    sunday = datetime(2026, 9, 6, 3, tzinfo=UTC)
    result = schedule.evaluate_tick(build_schedule_context(scheduled_execution_time=sunday))
    (request,) = result.run_requests or []
    assert request.tags[BUSINESS_DATE_TAG] == "2026-09-06"


def test_an_invalid_cron_expression_is_rejected_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        Shop(tmp_path, cron_schedule='"0 25 * * *"')
    message = str(caught.value)
    assert (
        "floe.yaml:8: orchestration.schedules.night.cron_schedule: '0 25 * * *' is not" in message
    )


def test_a_schedule_of_an_unknown_job_is_rejected(tmp_path: Path) -> None:
    floe_yaml = """
    orchestration:
      schedules:
        night: {job: nightli, cron_schedule: "@daily"}
    """
    with pytest.raises(SpecError, match=r"orchestration\.schedules\.night\.job: .*'nightli'"):
        load(make_project(tmp_path, floe_yaml))


def test_a_schedule_and_a_sensor_with_the_same_name_are_rejected(tmp_path: Path) -> None:
    floe_yaml = """
    orchestration:
      jobs:
        tidy: {type: ops, target_function: analyze}
      schedules:
        night: {job: tidy, cron_schedule: "@daily"}
      sensors:
        night: {type: file_watcher, job: tidy, path: landing}
    """
    loading = load(make_project(tmp_path, floe_yaml))
    with pytest.raises(SpecError, match=r"schedules\.night: a sensor has the same name"):
        build_schedules(loading, build_jobs(loading, Parts()))
