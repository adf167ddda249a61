"""Every mistake in a project is reported, alone and combined with others."""

from collections.abc import Callable
from copy import deepcopy
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from floe.settings import ProjectPaths
from floe.spec import SpecError, load_platform, validate_project

TEN_MISTAKES = ProjectPaths(Path(__file__).parent / "ten_mistakes")


def test_ten_mistakes_give_ten_findings_each_on_its_line() -> None:
    findings = [str(finding) for finding in validate_project(TEN_MISTAKES, {}).findings]

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
        "Let one process write it, or set writers: many on the dataset.",
        "floe.yaml:40: orchestration.schedules.morning.cron_schedule: "
        "'0 25 * * *' is not a cron expression. "
        'Write minute, hour, day, month and weekday, such as "0 6 * * 1-5".',
        "floe.yaml:42: orchestration.sensors.arrival.job: no job named 'nigthly'. "
        "Did you mean 'nightly'?",
        "floe.yaml:47: orchestration.backfills.january.partition_range.start: "
        "'2025-12-31' is before the start of 'daily'. It starts at 2026-01-01.",
    ]


PROJECT: dict[str, Any] = {
    "name": "night",
    "calendar": "TARGET",
    "timezone": "Europe/London",
    "datasets": {
        "raw.trades": {
            "format": "csv",
            "location": "landing/{business_date}/*.csv",
            "owner": {"team": "Risk"},
            "keys": ["id"],
            "schema": [{"name": "id", "type": "bigint"}, {"name": "at", "type": "date"}],
            "partitions": "daily",
            "sla": {"due": "07:00", "calendar": "TARGET"},
            "checks": [{"kind": "range", "column": "id", "min": 1}],
        },
        "ref.parties": {"format": "jdbc", "options": {"connection": "db", "table": "p"}},
        "risk.totals": {"retention": "90d", "classification": "internal"},
    },
    "processes": {
        "totals": {
            "inputs": {"trades": {"dataset": "raw.trades"}},
            "outputs": {"t": {"dataset": "risk.totals"}},
            "sql": "select 1 as x",
            "timeout": "5m",
            "sla": {"due": "08:00", "calendar": "TARGET"},
        }
    },
    "orchestration": {
        "partitions": {"daily": {"type": "time_window", "start": "2026-01-01"}},
        "assets": {"risk.*": {"partitions": "daily", "automation_condition": "eager"}},
        "jobs": {"nightly": {"type": "batch", "selection": ["risk.*"]}},
        "schedules": {
            "morning": {"job": "nightly", "cron_schedule": "0 6 * * *", "timezone": "UTC"}
        },
        "sensors": {
            "arrival": {"type": "file_watcher", "job": "nightly", "path": "in",
                        "pattern": "*.csv"},
            "after": {"type": "run_status", "status": "FAILURE", "watched_jobs": ["nightly"],
                      "job": "nightly"},
        },
        "backfills": {
            "january": {
                "job": "nightly",
                "partition_range": {"start": "2026-01-01", "end": "2026-01-31"},
            }
        },
    },
}  # fmt: skip
MISSING = object()
WORK = ("sql", "steps", "function", "command", "statements", "procedure")
SCHEDULE, ARRIVAL = "orchestration.schedules.morning", "orchestration.sensors.arrival"
TRADES, TOTALS = "datasets/raw.trades", "processes/totals"
MISTAKES: dict[str, Any] = {
    "timezone": "Europe/Londn",
    "calendar": "TARGT",
    f"{TRADES}/sla/due": "7 am",
    f"{TRADES}/sla/calendar": "TARGT",
    f"{TRADES}/partitions": "dayly",
    f"{TRADES}/keys/0": "nope",
    f"{TRADES}/schema/1/type": "moment",
    f"{TRADES}/schema/1/nam": "typo",
    f"{TRADES}/location": "landing/{day}/*.csv",
    f"{TRADES}/ownr": {"team": "typo"},
    f"{TRADES}/checks/0/kind": "rang",
    f"{TRADES}/checks/0/column": "nope",
    "datasets/ref.parties/options/fetchsiz": 5,
    "datasets/ref.parties/options/table": MISSING,
    "datasets/risk.totals/retention": "90 days",
    "datasets/risk.totals/classification": "secrt",
    f"{TOTALS}/inputs/trades/dataset": "raw.trade",
    f"{TOTALS}/inputs/trades/mapping": "lst",
    f"{TOTALS}/outputs/t/dataset": "risk.total",
    f"{TOTALS}/outputs/t/write": "merg",
    f"{TOTALS}/sql": MISSING,
    f"{TOTALS}/timeout": "soon",
    f"{TOTALS}/descripton": "typo",
    f"{TOTALS}/sla/calendar": "TARGT",
    "orchestration/partitions/daily/cron_schedule": "0 25 * * *",
    "orchestration/assets/risk.*/partitions": "dayly",
    "orchestration/assets/risk.*/automation_condition": "eagr",
    "orchestration/jobs/nightly/executor": {"type": "threads"},
    "orchestration/schedules/morning/job": "nigthly",
    "orchestration/schedules/morning/cron_schedule": "0 25 * * *",
    "orchestration/schedules/morning/timezone": "Europe/Londn",
    "orchestration/sensors/arrival/job": "nigthly",
    "orchestration/sensors/arrival/type": "file_wacher",
    "orchestration/sensors/arrival/path": MISSING,
    "orchestration/sensors/arrival/description": ["a", "b"],
    "orchestration/sensors/after/status": "FAILUR",
    "orchestration/sensors/after/watched_jobs/0": "nigthly",
    "orchestration/backfills/january/job": MISSING,
    "orchestration/backfills/january/batch_size": "many",
}
# Two mistakes at one key, or a mistake that hides the other.
DEPENDENT = {
    frozenset({f"{TRADES}/checks/0/kind", f"{TRADES}/checks/0/column"}),
    frozenset({f"{TRADES}/schema/1/type", f"{TRADES}/schema/1/nam"}),
}


def broken(*mistakes: str) -> dict[str, Any]:
    tree = deepcopy(PROJECT)
    for path in mistakes:
        here: Any = tree
        *steps, last = path.split("/")
        for step in steps:
            here = here[int(step)] if isinstance(here, list) else here.setdefault(step, {})
        if MISTAKES[path] is MISSING:
            del here[last]
        elif isinstance(here, list):
            here[int(last)] = MISTAKES[path]
        else:
            here[last] = MISTAKES[path]
    return tree


Findings = Callable[..., set[tuple[str, str]]]


@pytest.fixture
def findings(tmp_path: Path) -> Findings:
    def validate(*mistakes: str) -> set[tuple[str, str]]:
        (tmp_path / "floe.yaml").write_text(yaml.safe_dump(broken(*mistakes), sort_keys=False))
        reported = validate_project(ProjectPaths(tmp_path), {}).findings
        return {(finding.key, finding.message) for finding in reported}

    return validate


def test_the_project_is_valid_and_each_mistake_is_one_finding(findings: Findings) -> None:
    assert findings() == set()
    counts = {path: len(findings(path)) for path in MISTAKES}
    assert counts == dict.fromkeys(MISTAKES, 1)


def test_each_pair_of_mistakes_is_reported_fully(findings: Findings) -> None:
    alone = {path: findings(path) for path in MISTAKES}
    hidden = []
    for first, second in combinations(MISTAKES, 2):
        if frozenset({first, second}) not in DEPENDENT:
            both = findings(first, second)
            if both != alone[first] | alone[second]:
                hidden.append((first, second, both ^ (alone[first] | alone[second])))
    assert hidden == []


def test_all_mistakes_at_once(findings: Findings) -> None:
    dependent = {max(pair) for pair in DEPENDENT}
    wanted = [path for path in MISTAKES if path not in dependent]
    assert findings(*wanted) >= {finding for path in wanted for finding in findings(path)}


def test_unreadable_floe_yaml_does_not_hide_mistakes_of_the_platform(
    tmp_path: Path,
) -> None:
    (tmp_path / "floe.yaml").write_text("name: [x\n")
    (tmp_path / "platform.yaml").write_text("comput: {}\n")
    reported = validate_project(ProjectPaths(tmp_path), {}).findings
    assert {finding.file for finding in reported} == {"floe.yaml", "platform.yaml"}


def test_loading_rejects_what_validate_finds_in_a_platform_file(tmp_path: Path) -> None:
    (tmp_path / "floe.yaml").write_text("name: x\n")
    (tmp_path / "platform.yaml").write_text(
        "catalog: {default: {url: 'postgresql://me:secret@host/db'}}\n"
    )
    paths = ProjectPaths(tmp_path)
    findings = validate_project(paths, {}).findings
    with pytest.raises(SpecError) as refused:
        load_platform(paths, {})
    assert refused.value.findings == findings != ()
