"""What partition keys stand for."""

from datetime import date

import pytest
from dagster import (
    DailyPartitionsDefinition,
    HourlyPartitionsDefinition,
    MultiPartitionsDefinition,
    StaticPartitionsDefinition,
)

from floe.execution.assets import Moment
from floe.orchestration.moments import WrongBusinessDateError, business_date, moment_of_key
from floe.spec.identity import BUSINESS_DATE_TAG

DAILY = DailyPartitionsDefinition("2026-08-01")
REGIONS = StaticPartitionsDefinition(["EU", "US"])
TODAY, TUESDAY = date(2026, 9, 9), date(2026, 9, 1)


def test_a_day_is_the_business_date_and_no_partition_beside_it() -> None:
    assert moment_of_key("2026-09-01", DAILY, TODAY) == Moment(TUESDAY)


def test_a_day_may_be_written_in_other_letters() -> None:
    compact = DailyPartitionsDefinition("20260801", fmt="%Y%m%d")
    assert moment_of_key("20260901", compact, TODAY) == Moment(TUESDAY, "20260901")


def test_an_hour_is_a_partition_of_its_day() -> None:
    hourly = HourlyPartitionsDefinition("2026-08-01-00:00")
    moment = moment_of_key("2026-09-01-13:00", hourly, TODAY)
    assert moment == Moment(TUESDAY, "2026-09-01-13:00")


def test_a_key_without_time_is_made_for_the_date_of_the_run() -> None:
    assert moment_of_key("EU", REGIONS, TODAY) == Moment(TODAY, "EU")


def test_of_two_dimensions_the_time_is_the_business_date() -> None:
    both = MultiPartitionsDefinition({"region": REGIONS, "day": DAILY})
    # Dagster sorts the dimensions of a key by their names.
    assert moment_of_key("2026-09-01|EU", both, TODAY) == Moment(TUESDAY, "2026-09-01|EU")


def test_the_tag_of_a_run_is_its_business_date() -> None:
    assert business_date({BUSINESS_DATE_TAG: "2026-09-01"}, "UTC") == TUESDAY
    with pytest.raises(WrongBusinessDateError, match="to 2199-12-31"):
        business_date({BUSINESS_DATE_TAG: "9999-12-31"}, "UTC")
    with pytest.raises(WrongBusinessDateError, match=r"is '1\.9\.', which is not"):
        business_date({BUSINESS_DATE_TAG: "1.9."}, "UTC")
