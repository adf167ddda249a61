"""A file with ten different mistakes gives those ten findings, and nothing else."""

from pathlib import Path

from floe.settings import ProjectPaths
from floe.spec import validate_project

PROJECT = ProjectPaths(Path(__file__).parent / "ten_mistakes")


def test_ten_mistakes_give_ten_findings_each_on_its_line() -> None:
    findings = [str(finding) for finding in validate_project(PROJECT, {}).findings]

    assert findings == [
        "floe.yaml:2: timezone: 'Europe/Londn' is not a time zone. Did you mean 'Europe/London'?",
        "floe.yaml:6: datasets.market.fx_rates.fromat: unknown key. Did you mean 'format'?",
        "floe.yaml:8: datasets.market.fx_rates.sla.calendar: no calendar named 'TARGT'. "
        "Did you mean 'TARGET'?",
        "floe.yaml:10: datasets.credit.positions.retention: '90 days' is not a duration. "
        "Write it as 30s, 20m, 1h30m or 90d.",
        "floe.yaml:18: processes.credit.exposure_daily.inputs.positions: "
        "no dataset named 'credit.position'. Did you mean 'credit.positions'?",
        "floe.yaml:19: processes.credit.exposure_daily.inputs.limits: "
        "the process is its own upstream: credit.exposure_daily → credit.exposure → "
        "credit.limits_daily → credit.limits → credit.exposure_daily. "
        "Break the cycle, or read an earlier date (mapping: previous_business_day).",
        "floe.yaml:29: processes.credit.exposure_again.outputs.exposure: "
        "'credit.exposure' is already written by 'credit.exposure_daily'. "
        "Let one process write it, or say writers: many on the dataset.",
        "floe.yaml:40: orchestration.schedules.morning.cron_schedule: "
        "'0 25 * * *' is not a cron expression. "
        'Write minute, hour, day, month and weekday, such as "0 6 * * 1-5".',
        "floe.yaml:42: orchestration.sensors.arrival.job: no job named 'nigthly'. "
        "Did you mean 'nightly'?",
        "floe.yaml:47: orchestration.backfills.january.partition_range.start: "
        "'2025-12-31' is before 'daily' begins. It begins at 2026-01-01.",
    ]
