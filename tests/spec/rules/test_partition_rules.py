"""Rules for partitions and backfills."""

from collections.abc import Callable

import pytest

Find = Callable[..., list[str]]


def partitions(body: str) -> str:
    return f"name: x\norchestration:\n  partitions:\n    p: {{{body}}}\n"


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        (
            "type: time_window, start: 2026-06-01, end: 2026-01-01",
            "p.end: the end 2026-01-01 is not after the start 2026-06-01. "
            "Swap them, or change one.",
        ),
        (
            "type: time_window, start: 01.06.2026",
            "p.start: '01.06.2026' does not match the format %Y-%m-%d. "
            "Write a date such as 2026-09-01.",
        ),
        (
            "type: time_window, start: 2026-01-01, end: never",
            "p.end: 'never' does not match the format %Y-%m-%d. Write a date such as 2026-09-01.",
        ),
        (
            "type: time_window, start: 2026-01-01, cron_schedule: '0 * * * *'",
            "p.cron_schedule: two windows of '0 * * * *' would have the key '2026-01-01'. "
            "Use a finer fmt, such as %Y-%m-%d-%H:%M, or a coarser schedule.",
        ),
        (
            "type: time_window, start: 2026-01-01, cron_schedule: '0 0 1,15 * *', fmt: '%Y-%m'",
            "p.cron_schedule: two windows of '0 0 1,15 * *' would have the key '2026-01'. "
            "Use a finer fmt, such as %Y-%m-%d-%H:%M, or a coarser schedule.",
        ),
        (
            "type: time_window, start: 2026-01-06, end: 2026-01-08, cron_schedule: '0 0 * * 1'",
            "p.cron_schedule: no window of '0 0 * * 1' begins between start and end. "
            "Move the end, or use a finer schedule.",
        ),
        (
            "type: time_window, start: 2026-01-01, calendar: TARGT",
            "p.calendar: no calendar named 'TARGT'. Did you mean 'TARGET'?",
        ),
        (
            "type: static, partition_keys: [EMEA, APAC, EMEA]",
            "p.partition_keys[2]: the key 'EMEA' is duplicated. Keep one of them.",
        ),
        (
            "type: static, partition_keys: []",
            "p.partition_keys: must not be empty. Add what is missing.",
        ),
        (
            "type: multi, partitions: {day: daily, region: {type: static, partition_keys: [a]}}",
            "p.partitions.day: no partitions named 'daily'. "
            "Declare it under orchestration.partitions.",
        ),
        (
            "type: multi, partitions: {a: p, b: {type: dynamic}}",
            "p.partitions.a: 'p' already has several dimensions. "
            "Use partitions with one dimension.",
        ),
        (
            "type: multi, partitions: {a: {type: dynamic}}",
            "p.partitions: needs at least 2 entries. Add what is missing.",
        ),
    ],
)
def test_mistake_in_partitions_is_a_finding(find: Find, body: str, finding: str) -> None:
    assert find(partitions(body)) == [f"floe.yaml:4: orchestration.partitions.{finding}"]


def backfill(start: str, end: str, more: str = "") -> str:
    return f"""
        name: x
        orchestration:
          partitions:
            daily: {{type: time_window, start: "2026-01-01", end: "2026-07-01"}}
            weekly: {{type: time_window, start: "2026-01-01", cron_schedule: "0 0 * * 1"}}
            region: {{type: static, partition_keys: [EMEA, APAC, AMER]}}
          assets:
            "bronze.*": {{partitions: daily, group_name: bronze}}
            "silver.*": {{partitions: weekly}}
            "gold.*": {{partitions: region}}
          jobs:
            bronze: {{type: batch, selection: ["group:bronze"]}}
            silver: {{type: batch, selection: ["+silver/orders"]}}
            gold: {{type: batch, selection: ["asset:gold/*"]}}
            mixed: {{type: batch, selection: ["bronze.*", "gold.*"]}}
          backfills:
            b:
              {more or "job: bronze"}
              partition_range:
                start: "{start}"
                end: "{end}"
        """


@pytest.mark.parametrize(
    ("start", "end", "more", "finding"),
    [
        (
            "2025-12-31",
            "2026-01-31",
            "",
            "21: {}.start: '2025-12-31' is before the start of 'daily'. It starts at 2026-01-01.",
        ),
        (
            "2026-01-01",
            "2026-07-01",
            "",
            "22: {}.end: '2026-07-01' is after the end of 'daily'. It ends before 2026-07-01.",
        ),
        (
            "2026-03-01",
            "2026-02-01",
            "",
            "22: {}.end: the end 2026-02-01 is before the start 2026-03-01. Swap them.",
        ),
        (
            "2026-1",
            "2026-02-01",
            "",
            "21: {}.start: '2026-1' is not a key of 'daily'. Write it as %Y-%m-%d.",
        ),
        (
            "2026-01-06",
            "2026-01-12",
            "job: silver",
            "21: {}.start: '2026-01-06' is not a key of 'weekly': no window begins then. "
            "The next is 2026-01-12.",
        ),
        (
            "EMEA",
            "AMERR",
            "job: gold",
            "22: {}.end: 'AMERR' is not a key of 'region'. Did you mean 'AMER'?",
        ),
        (
            "AMER",
            "EMEA",
            "job: gold",
            "22: {}.end: the end EMEA is before the start AMER. Swap them.",
        ),
        (
            "EMEA",
            "APAC",
            "{job: mixed, partitions: regin}",
            "19: orchestration.backfills.b.partitions: no partitions named 'regin'. "
            "Did you mean 'region'?",
        ),
    ],
)
def test_backfill_must_be_within_its_partitions(
    find: Find, start: str, end: str, more: str, finding: str
) -> None:
    if more.startswith("{"):
        more = more.strip("{}").replace(", ", "\n              ")
        finding = finding.replace("19:", "20:")
    where = "orchestration.backfills.b.partition_range"
    assert find(backfill(start, end, more)) == [f"floe.yaml:{finding.format(where)}"]


@pytest.mark.parametrize(
    ("start", "end", "more"),
    [
        ("2026-01-01", "2026-06-30", ""),
        ("2026-01-05", "2026-02-02", "job: silver"),
        ("EMEA", "AMER", "job: gold"),
        ("anything", "goes", "job: mixed"),
    ],
)
def test_backfill_within_its_partitions_is_valid(
    find: Find, start: str, end: str, more: str
) -> None:
    assert not find(backfill(start, end, more))
