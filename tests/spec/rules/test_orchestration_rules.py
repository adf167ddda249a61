"""Rules for jobs, schedules, sensors and asset patterns."""

from collections.abc import Callable

import pytest

Find = Callable[..., list[str]]


def orchestration(body: str) -> str:
    """A project with a job `nightly`; the other keys of the section start on line 6."""
    lines = "\n".join(f"  {line}" for line in body.strip().splitlines())
    return (
        "name: x\ndatasets: {bronze.orders: {}}\norchestration:\n"
        f"  jobs:\n    nightly: {{type: batch, selection: ['*']}}\n{lines}\n"
    )


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        (
            "schedules: {s: {job: nightl, cron_schedule: '@daily'}}",
            "schedules.s.job: no job named 'nightl'. Did you mean 'nightly'?",
        ),
        (
            "schedules: {s: {job: nightly, cron_schedule: '@daily', timezone: Berlin}}",
            "schedules.s.timezone: 'Berlin' is not a time zone. Did you mean 'Europe/Berlin'?",
        ),
        (
            "schedules: {s: {job: nightly, cron_schedule: '@daily', partition_selector: last}}",
            "schedules.s.partition_selector: 'last' is not a valid value. Did you mean 'latest'?",
        ),
        (
            "sensors: {s: {type: asset_sensor, job: nihgtly, watched_assets: [bronze/orders]}}",
            "sensors.s.job: no job named 'nihgtly'. Did you mean 'nightly'?",
        ),
        (
            "sensors: {s: {type: asset_sensor, job: nightly, watched_assets: [bronze.order]}}",
            "sensors.s.watched_assets[0]: no dataset named 'bronze.order'. "
            "Did you mean 'bronze.orders'?",
        ),
        (
            "sensors: {s: {type: run_status, notify: log, watched_jobs: [nightl]}}",
            "sensors.s.watched_jobs[0]: no job named 'nightl'. Did you mean 'nightly'?",
        ),
        (
            "sensors: {type: {type: run_status, notify: log}}",
            "sensors.type: is a name that Dagster reserves. Rename it.",
        ),
        (
            "sensors: {s: {type: run_status, status: FAILURE}}",
            "sensors.s: has no job and no channel. Give it a job to start, or channels to notify.",
        ),
        (
            "sensors: {s: {type: run_status, job: nightly, status: FAILED}}",
            "sensors.s.status: 'FAILED' is not a valid value. Did you mean 'FAILURE'?",
        ),
        (
            "sensors: {s: {type: file_watcher, job: nightly, path: in, pattern: 'fx_[0-9'}}",
            "sensors.s.pattern: 'fx_[0-9' is not a valid pattern: [ is not closed. "
            "Close the set, such as [0-9].",
        ),
        (
            "sensors: {s: {type: file_watcher, job: nightly, path: in, pattern: '(', "
            "pattern_type: regex}}",
            "sensors.s.pattern: '(' is not a valid regular expression: "
            "missing ), unterminated subpattern at position 0. "
            'Correct it; a literal dot or bracket needs a backslash: "\\.".',
        ),
        (
            "sensors: {s: {type: file_watcher, job: nightly, path: in, poll_interval_seconds: 0}}",
            "sensors.s.poll_interval_seconds: must be at least 1, not 0. Change the number.",
        ),
        (
            "sensors: {s: {type: file_wacher, job: nightly, path: in}}",
            "sensors.s.type: 'file_wacher' is not a known type. Did you mean 'file_watcher'?",
        ),
        (
            "assets: {'bronze.*': {partitions: daily}}",
            "assets.bronze.*.partitions: no partitions named 'daily'. "
            "Declare it under orchestration.partitions.",
        ),
        (
            "assets: {'bronze.*': {automation_condition: on_cron}}",
            "assets.bronze.*.cron_schedule: is missing. on_cron needs it.",
        ),
        (
            "assets: {'bronze.*': {cron_schedule: '@daily'}}",
            "assets.bronze.*.cron_schedule: "
            "has no effect without automation_condition: on_cron. "
            "Add the condition, or remove this key.",
        ),
        (
            "assets: {'bronze.[a': {group_name: bronze}}",
            "assets.bronze.[a: 'bronze.[a' is not a valid pattern: [ is not closed. "
            "Close the set, such as [0-9].",
        ),
        (
            "dbt: {target: dev}",
            "dbt: names no dbt project. Give project_dir, or a dbt project under transforms.",
        ),
        (
            "asset_modules: [orchestration/assets]",
            "asset_modules[0]: 'orchestration/assets' is not a module. "
            "Write it as package.module, such as orchestration.assets.bronze.",
        ),
    ],
)
def test_mistake_in_orchestration_is_found_on_its_line(find: Find, body: str, finding: str) -> None:
    assert find(orchestration(body)) == [f"floe.yaml:6: orchestration.{finding}"]


def test_ops_job_calls_a_function_or_a_built_in_one(find: Find) -> None:
    text = """
        name: x
        orchestration:
          jobs:
            clean: {type: ops, target_function: vacuum, args: {retain: 30d}}
            mine: {type: ops, target_function: ops.tidy.run}
            typo: {type: ops, target_function: vacum}
        """
    assert find(text) == [
        "floe.yaml:7: orchestration.jobs.typo.target_function: 'vacum' is not a function. "
        "Did you mean 'vacuum'?"
    ]


def test_watched_assets_are_not_checked_if_modules_may_declare_them(find: Find) -> None:
    body = """
asset_modules: [assets.bronze]
sensors: {s: {type: asset_sensor, job: nightly, watched_assets: [bronze/unknown], when: all}}
"""
    assert not find(orchestration(body))


def test_triggered_process_must_not_be_automated_too(find: Find) -> None:
    (finding,) = find(
        """
        name: x
        datasets: {credit.a: {}, credit.b: {}}
        processes:
          credit.p: {inputs: {a: credit.a}, outputs: {b: credit.b}, trigger: dataset, sql: x}
        orchestration:
          assets:
            "credit/*": {automation_condition: eager}
        """
    )
    assert finding == (
        "floe.yaml:8: orchestration.assets.credit/*.automation_condition: "
        "'credit.b' is written by 'credit.p', which floe starts (trigger: dataset). "
        "Use trigger: process there, or a pattern that excludes it."
    )


def test_every_key_of_orchestration_is_accepted(find: Find) -> None:
    assert not find(
        """
        name: x
        transforms: [{type: dbt, path: dbt, vars: {a: 1}}]
        orchestration:
          asset_modules: [orchestration.assets.bronze, .assets.ops]
          dbt: {manifest_path: dbt/target/manifest.json, project_dir: dbt, profiles_dir: dbt,
                target: dev, observability_level: per_model}
          partitions:
            daily: {type: time_window, start: "2026-01-01", end: "2027-01-01",
                    cron_schedule: "0 0 * * *", timezone: Europe/Berlin, fmt: "%Y-%m-%d",
                    end_offset: 1, calendar: TARGET}
            hourly: {type: time_window, start: 2026-01-01, cron_schedule: "@hourly",
                     fmt: "%Y-%m-%d-%H:%M"}
            region: {type: static, partition_keys: [EMEA, APAC, 1]}
            grid: {type: multi, partitions: {day: daily, kind: {type: static, partition_keys: [a]}}}
            customers: {type: dynamic, fn: assets.keys.customers}
          assets:
            "bronze/*": {partitions: daily, automation_condition: on_cron,
                         cron_schedule: "0 6 * * *", backfill_policy: single_run,
                         group_name: bronze, compute_kind: python}
            "silver/*": {automation_condition: eager,
                         backfill_policy: {max_partitions_per_run: 10}}
          jobs:
            nightly: {type: batch, selection: ["group:bronze", "+silver/*"], tags: {team: risk},
                      executor: in_process, description: All of it}
            clean: {type: ops, target_function: ops.vacuum, args: {days: 7}}
          schedules:
            night: {job: nightly, cron_schedule: "0 2 * * *", timezone: Europe/Berlin,
                    enabled: "${ON:false}", partition_selector: all, description: At night}
          sensors:
            files: {type: file_watcher, job: nightly, path: "s3://in", pattern: "*.csv"}
            assets: {type: asset_sensor, job: nightly, watched_assets: [bronze/a], when: all}
            status: {type: run_status, notify: [log], watched_jobs: [nightly], status: SUCCESS}
            own: {type: custom, job: nightly, target_function: ops.look, args: {a: 1}}
          backfills:
            history: {job: nightly, partitions: daily, batch_size: 10,
                      partition_range: {start: "2026-02-02", end: "2026-03-31"}, tags: {a: b}}
        """
    )
