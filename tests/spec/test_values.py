"""Durations, times, zones, cron expressions, patterns and names."""

from datetime import date, time, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from floe.spec import values
from floe.spec.checks import Expectation, Expected, parse_expectation
from floe.spec.names import check_dataset_name, check_glob, check_regex
from floe.spec.sql import check_column_type
from floe.spec.values import (
    Command,
    Date,
    Duration,
    Share,
    TimeOfDay,
    check_cron,
    check_zone,
    format_duration,
    parse_duration,
    parse_time,
)


def message_of(kind: Any, value: object) -> tuple[str, str]:
    with pytest.raises(ValidationError) as failure:
        TypeAdapter(kind).validate_python(value)
    context = failure.value.errors()[0]["ctx"]
    return context["message"], context["hint"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("20m", 1200), ("1h30m", 5400), ("90d", 7_776_000), ("2w", 1_209_600)],
)
def test_duration_reads_units_from_weeks_to_seconds(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "20", "20 m", "m", "1.5h", "30m1h", "-5m", "٣s"])
def test_invalid_duration_is_rejected(text: str) -> None:
    assert message_of(Duration, text) == (
        f"'{text}' is not a duration",
        "Write it as 30s, 20m, 1h30m or 90d.",
    )


@pytest.mark.parametrize("text", ["999999999w", "365251d", "999999999d"])
def test_too_long_duration_is_rejected(text: str) -> None:
    assert message_of(Duration, text) == (
        f"'{text}' is too long",
        "A duration must be at most 1000 years.",
    )


@given(st.integers(min_value=0, max_value=10**9))
def test_formatted_duration_can_be_parsed(seconds: int) -> None:
    duration = timedelta(seconds=seconds)
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize("kind", [Duration, TimeOfDay, Date])
def test_list_is_not_a_duration_time_or_date(kind: Any) -> None:
    with pytest.raises(ValidationError, match="valid string"):
        TypeAdapter(kind).validate_python(["20m"])


def test_time_of_day_reads_hours_and_minutes() -> None:
    assert parse_time("06:30") == time(6, 30)
    assert parse_time("18:30:15") == time(18, 30, 15)


@pytest.mark.parametrize("text", ["24:00", "6.30", "06:60", "noon"])
def test_invalid_time_of_day_is_rejected(text: str) -> None:
    assert message_of(TimeOfDay, text)[0] == f"'{text}' is not a time of day"


@pytest.mark.parametrize("text", ["2026-02-30", "01.09.2026", "20260901", "tomorrow"])
def test_invalid_date_is_rejected(text: str) -> None:
    assert message_of(Date, text)[0] == f"'{text}' is not a date"


def test_date_time_and_duration_accept_python_values() -> None:
    assert TypeAdapter(Date).validate_python(date(2026, 9, 1)) == date(2026, 9, 1)
    assert TypeAdapter(TimeOfDay).validate_python(time(6)) == time(6)
    assert TypeAdapter(Duration).validate_python(timedelta(1)) == timedelta(1)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("Europe/Londn", "Europe/London"), ("London", "Europe/London"), ("new york", "New_York")],
)
def test_unknown_zone_suggests_a_similar_one(written: str, meant: str) -> None:
    message, hint = message_of(values.Zone, written)
    assert message == f"'{written}' is not a time zone"
    assert meant in hint


@pytest.mark.parametrize("text", ["../etc/passwd", "/etc/localtime", "Europe", "\x00", "xyzzy"])
def test_zone_rejects_paths_and_folders(text: str) -> None:
    with pytest.raises(PydanticCustomError):
        check_zone(text)


@pytest.mark.parametrize("text", ["0 6 * * 1-5", "*/5 * * * *", "@daily", "0 0 29 2 *"])
def test_cron_accepts_five_fields_and_macros(text: str) -> None:
    assert check_cron(text) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 25 * * *", "'0 25 * * *' is not a cron expression"),
        ("0 6 * *", "'0 6 * *' has 4 fields; a cron expression has 5"),
        ("0 0 6 * * *", "'0 0 6 * * *' has 6 fields; a cron expression has 5"),
        ("0 0 30 2 *", "'0 0 30 2 *' never fires"),
        ("@dayly", "'@dayly' is not a cron expression"),
        ("H * * * *", "'H * * * *' is not a cron expression"),
    ],
)
def test_invalid_cron_is_rejected_with_the_reason(text: str, message: str) -> None:
    assert message_of(values.Cron, text)[0] == message


def test_misspelled_macro_gets_a_suggestion() -> None:
    assert message_of(values.Cron, "@dayly")[1] == "Did you mean '@daily'?"


@given(st.text(alphabet="0123456789*/,-@ LWH#", max_size=30))
def test_cron_raises_no_other_error(text: str) -> None:
    try:
        check_cron(text)
    except PydanticCustomError:
        return


def test_regex_says_what_is_wrong() -> None:
    with pytest.raises(PydanticCustomError, match="unterminated character set"):
        check_regex("fx_[0-9")
    assert check_regex(r"fx_\d+\.csv") == r"fx_\d+\.csv"


@pytest.mark.parametrize("pattern", ["*.csv", "datasets/**/*.yaml", "fx_[0-9]*.csv", "[!a]*"])
def test_glob_accepts_stars_and_sets(pattern: str) -> None:
    assert check_glob(pattern) == pattern


@pytest.mark.parametrize("pattern", ["", "  ", "fx_[0-9.csv", "data/**.csv"])
def test_invalid_glob_is_rejected(pattern: str) -> None:
    with pytest.raises(PydanticCustomError):
        check_glob(pattern)


@pytest.mark.parametrize(
    "name", ["credit", "Credit.Exposure", "credit.", "credit.ex-posure", "a b"]
)
def test_dataset_name_is_schema_and_table_in_lower_case(name: str) -> None:
    with pytest.raises(PydanticCustomError, match="is not a dataset name"):
        check_dataset_name(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("= 0", Expectation("=", 0)),
        ("0", Expectation("=", 0)),
        (">= 100.5", Expectation(">=", 100.5)),
        ("<> -1", Expectation("!=", -1)),
        ("between 1 and 5", Expectation("between", 1, 5)),
    ],
)
def test_expectation_reads_comparisons(text: str, expected: Expectation) -> None:
    assert parse_expectation(text) == expected
    assert parse_expectation(str(expected)) == expected


def test_invalid_expectation_is_rejected() -> None:
    assert message_of(Expected, "none")[0] == "'none' is not an expectation"


def test_share_is_a_percentage_or_a_fraction() -> None:
    share = TypeAdapter(Share)
    assert share.validate_python("20%") == share.validate_python("0.2") == pytest.approx(0.2)
    assert message_of(Share, "lots")[0] == "'lots' is not a share"


def test_command_is_a_list_or_a_text() -> None:
    command = TypeAdapter(Command)
    assert command.validate_python("java -jar 'a b.jar'") == ("java", "-jar", "a b.jar")
    assert command.validate_python(["java", "-jar"]) == ("java", "-jar")
    assert message_of(Command, "echo 'open")[0] == "the command has an unclosed quote"


@pytest.mark.parametrize(
    "text",
    ["bigint", "DECIMAL(18, 2)", "array<string>", "map<string, struct<id: int, at: timestamp>>"],
)
def test_column_type_is_a_spark_type(text: str) -> None:
    assert check_column_type(text) == text


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("bigin", "Did you mean 'bigint'?"),
        ("decimal(18;2)", "Write it as decimal(18,2)."),
        ("array<>", "Write a Spark SQL type, such as bigint or decimal(18,2)."),
    ],
)
def test_invalid_column_type_gets_a_suggestion(text: str, hint: str) -> None:
    with pytest.raises(PydanticCustomError) as failure:
        check_column_type(text)
    assert failure.value.context is not None
    assert failure.value.context["hint"] == hint


@given(st.text(alphabet="arymapstuc<>():, intdelg18", max_size=60))
def test_column_type_raises_no_other_error(text: str) -> None:
    try:
        check_column_type(text)
    except PydanticCustomError:
        return
