"""Dates in names: which are recognized, and the name of the dataset without them."""

from datetime import date

import pytest

from floe.spec.dates import DEFAULT_RULES, DateRules, Part, location_date

FIRST = date(2026, 9, 1)


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("/landing/exposure_20260901.csv", "/landing/exposure_{date}.csv"),
        ("/landing/2026-09-01/fx.csv", "/landing/{date}/fx.csv"),
        ("landing/2026/09/01/fx.csv", "landing/{date}/fx.csv"),
        ("landing/fx/business_date=2026-09-01", "landing/fx/business_date={date}"),
        ("landing/fx/cob=20260901", "landing/fx/cob={date}"),
        ("landing/fx/year=2026/month=9/day=1", "landing/fx/{date}"),
        ("landing/fx/year=2026/month=09/day=01/a.parquet", "landing/fx/{date}/a.parquet"),
        ("landing/2026-09-01/exposure_20260901.csv", "landing/{date}/exposure_{date}.csv"),
        ("risk.exposure_20260901", "risk.exposure_{date}"),
        ("exposure.20260901.csv", "exposure.{date}.csv"),
    ],
)
def test_a_date_in_a_name_is_the_business_date(name: str, folded: str) -> None:
    dated = DEFAULT_RULES.fold(name)
    assert dated is not None
    assert (dated.name, dated.business_date, dated.partition) == (folded, FIRST, None)


@pytest.mark.parametrize(
    "name",
    [
        "credit.exposure",
        "accounts_12345678.csv",
        "accounts_20261301.csv",
        "accounts_20260230.csv",
        "accounts_18991231.csv",
        "batch_120260901.csv",
        "exposure20260901.csv",
        "v20260901",
        "lib-1.20260901.jar",
        "runs/20260901-4c2f-5d0a-9a7e-0c1f6f6f2b31",
        "0c1f6f6f2b3120260901",
        "a/2026-09/01",
        "20260901T063000.csv",
        "20260901",
        "/2026/09/01",
    ],
)
def test_numbers_that_only_look_like_dates_are_ignored(name: str) -> None:
    assert DEFAULT_RULES.fold(name) is None


def test_last_of_several_dates_is_the_business_date_and_others_the_partition() -> None:
    dated = DEFAULT_RULES.fold("report_20260801_20260831.csv")
    assert dated is not None
    assert dated.name == "report_{date}_{date}.csv"
    assert (dated.business_date, dated.partition) == (date(2026, 8, 31), "2026-08-01")


def test_date_with_the_key_business_date_takes_precedence() -> None:
    dated = DEFAULT_RULES.fold("fx/business_date=2026-09-01/load_date=2026-09-02")
    assert dated is not None
    assert (dated.business_date, dated.partition) == (FIRST, "2026-09-02")


def test_other_keys_of_a_dated_path_are_its_partition() -> None:
    dated = DEFAULT_RULES.fold("/fx/business_date=2026-09-01/region=EU/desk=rates")
    assert dated is not None
    assert dated.name == "/fx/business_date={date}/region={region}/desk={desk}"
    assert (dated.business_date, dated.partition) == (FIRST, "region=EU|desk=rates")


def test_a_location_without_a_date_has_its_keys_as_partition() -> None:
    assert DEFAULT_RULES.read_part("/fx/region=EU") == Part(None, "region=EU")
    assert DEFAULT_RULES.read_part("/fx/part-0001.parquet") == Part()


def test_long_partitions_stay_distinct() -> None:
    europe, america = (
        DEFAULT_RULES.read_part(f"a={'x' * 290}/b={value}").partition for value in ("EU", "US")
    )
    assert europe != america
    assert max(len(europe or ""), len(america or "")) <= 270


def test_custom_rules_replace_the_built_in_ones() -> None:
    rules = DateRules([r"_D(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})"])
    dated = rules.fold("exposure_D20260901.csv")
    assert dated is not None
    assert (dated.name, dated.business_date) == ("exposure{date}.csv", FIRST)
    assert rules.fold("exposure_20260901.csv") is None


def test_no_rules_find_nothing() -> None:
    assert DateRules([]).fold("exposure_20260901.csv") is None


@pytest.mark.parametrize(
    ("location", "path", "part"),
    [
        ("landing/fx/{business_date}/*.csv", "/data/landing/fx/2026-09-01/eu.csv", Part(FIRST)),
        ("landing/fx/{business_date}/*.csv", "/data/landing/fx/2026-09-01", Part(FIRST)),
        ("landing/fx/{business_date}/*.csv", "/data/landing/fx/2026-09-01/eu.txt", None),
        ("landing/fx/{business_date}/*.csv", "/data/landing/other/2026-09-01/eu.csv", None),
        ("landing/fx/{business_date}/*.csv", "/data/landing/fx/today/eu.csv", None),
        (
            "in/{business_date}/fx_{partition}_asof_2026-01-01.csv",
            "/in/2026-09-01/fx_EU_asof_2026-01-01.csv",
            Part(FIRST, "EU"),
        ),
        ("in/{business_date}/a_{business_date}.csv", "in/2026-09-01/a_2026-09-01.csv", Part(FIRST)),
    ],
)
def test_declared_location_defines_the_position_of_the_date(
    location: str, path: str, part: Part | None
) -> None:
    assert location_date(location, path) == part
