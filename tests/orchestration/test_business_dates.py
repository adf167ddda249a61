"""Business dates of partition keys and runs."""

from datetime import date

import pytest
from dagster import (
    DailyPartitionsDefinition,
    HourlyPartitionsDefinition,
    MultiPartitionsDefinition,
    StaticPartitionsDefinition,
)

from floe.execution.asset_versions import VersionKey
from floe.orchestration.business_dates import WrongBusinessDateError, business_date, moment_of_key
from floe.spec.identity import BUSINESS_DATE_TAG

DAILY = DailyPartitionsDefinition("2026-08-01")
REGIONS = StaticPartitionsDefinition(["EU", "US"])
TODAY, TUESDAY = date(2026, 9, 9), date(2026, 9, 1)


def test_a_day_key_is_the_business_date_without_a_partition() -> None:
    assert moment_of_key("2026-09-01", DAILY, TODAY) == VersionKey(TUESDAY)


def test_a_day_key_may_have_another_format() -> None:
    compact = DailyPartitionsDefinition("20260801", fmt="%Y%m%d")
    assert moment_of_key("20260901", compact, TODAY) == VersionKey(TUESDAY, "20260901")


def test_an_hour_is_a_partition_of_its_day() -> None:
    hourly = HourlyPartitionsDefinition("2026-08-01-00:00")
    moment = moment_of_key("2026-09-01-13:00", hourly, TODAY)
    assert moment == VersionKey(TUESDAY, "2026-09-01-13:00")


def test_a_key_without_time_gets_the_date_of_the_run() -> None:
    assert moment_of_key("EU", REGIONS, TODAY) == VersionKey(TODAY, "EU")


def test_the_time_dimension_of_two_is_the_business_date() -> None:
    both = MultiPartitionsDefinition({"region": REGIONS, "day": DAILY})
    # Dagster sorts the dimensions of a key by their names.
    assert moment_of_key("2026-09-01|EU", both, TODAY) == VersionKey(TUESDAY, "2026-09-01|EU")


def test_the_tag_of_a_run_is_its_business_date() -> None:
    assert business_date({BUSINESS_DATE_TAG: "2026-09-01"}, "UTC") == TUESDAY
    with pytest.raises(WrongBusinessDateError, match="to 2199-12-31"):
        business_date({BUSINESS_DATE_TAG: "9999-12-31"}, "UTC")
    with pytest.raises(WrongBusinessDateError, match=r"is '1\.9\.', which is not"):
        business_date({BUSINESS_DATE_TAG: "1.9."}, "UTC")
