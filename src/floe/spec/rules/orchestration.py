"""Rules for jobs, schedules, sensors and asset patterns: what they name is declared."""

import keyword
from collections.abc import Iterator
from fnmatch import fnmatchcase

from pydantic_core import PydanticCustomError

from floe.spec.findings import KeyPath, Problem
from floe.spec.orchestration import (
    AssetConfig,
    AssetSensor,
    Dbt,
    FileWatcherSensor,
    RunStatusSensor,
)
from floe.spec.patterns import check_glob, check_regex
from floe.spec.rules.draft import Draft

RESERVED = frozenset(
    [
        "arg_dict",
        "bool",
        "conf",
        "config",
        "context",
        "dict",
        "float",
        "input",
        "input_arg_dict",
        "int",
        "meta",
        "output",
        "output_arg_dict",
        "str",
        "type",
    ]
) | frozenset(keyword.kwlist)
"""Names that Dagster keeps for itself and for Python."""


def check_orchestration(draft: Draft) -> Iterator[Problem]:
    """Find references to nothing, and settings that contradict each other."""
    yield from _check_names(draft)
    yield from _check_jobs_named(draft)
    yield from _check_sensors(draft)
    yield from _check_assets(draft)
    yield from _check_dbt(draft)


def _check_names(draft: Draft) -> Iterator[Problem]:
    for section in ("jobs", "schedules", "sensors"):
        for name in draft.names("orchestration", section):
            if name in RESERVED:
                path = ("orchestration", section, name)
                yield Problem(path, "is a name that Dagster keeps", "Rename it.", at_key=True)


def _check_jobs_named(draft: Draft) -> Iterator[Problem]:
    orchestration = draft.spec.orchestration
    named = [
        (("orchestration", section, name, "job"), one.job)
        for section, things in (
            ("schedules", orchestration.schedules),
            ("sensors", orchestration.sensors),
            ("backfills", orchestration.backfills),
        )
        for name, one in things.items()
        if one.job is not None
    ]
    for path, job in named:
        yield from _unknown_job(draft, path, job)


def _unknown_job(draft: Draft, path: KeyPath, job: str) -> Iterator[Problem]:
    jobs = draft.names("orchestration", "jobs")
    if job not in jobs:
        yield draft.unknown(path, "job", job, jobs, "Declare it under orchestration.jobs.")


def _check_sensors(draft: Draft) -> Iterator[Problem]:
    for name, sensor in draft.spec.orchestration.sensors.items():
        path = ("orchestration", "sensors", name)
        if isinstance(sensor, FileWatcherSensor):
            yield from _check_pattern(path, sensor)
        elif isinstance(sensor, AssetSensor):
            yield from _check_watched_assets(draft, path, sensor)
        elif isinstance(sensor, RunStatusSensor):
            for index, job in enumerate(sensor.watched_jobs):
                yield from _unknown_job(draft, (*path, "watched_jobs", index), job)
            if draft.lacks(path, RunStatusSensor, "job", "notify"):
                hint = "Give it a job to start, or channels to notify."
                yield Problem(path, "reacts to nothing", hint, at_key=True)


def _check_pattern(path: KeyPath, sensor: FileWatcherSensor) -> Iterator[Problem]:
    check = check_regex if sensor.pattern_type == "regex" else check_glob
    try:
        check(sensor.pattern)
    except PydanticCustomError as error:
        words = error.context or {}
        also = ((*path, "pattern_type"),)
        message, hint = str(words["message"]), str(words["hint"])
        yield Problem((*path, "pattern"), message, hint, also=also)


def _check_watched_assets(draft: Draft, path: KeyPath, sensor: AssetSensor) -> Iterator[Problem]:
    """Python assets and dbt models are known only at load; without them datasets are all."""
    if assets_are_discovered(draft):
        return
    datasets = draft.names("datasets")
    for index, asset in enumerate(sensor.watched_assets):
        if asset.replace("/", ".") not in datasets:
            otherwise = "Declare it under datasets."
            at = (*path, "watched_assets", index)
            yield draft.unknown(at, "dataset", asset, datasets, otherwise)


def assets_are_discovered(draft: Draft) -> bool:
    """Tell whether the project has assets that only loading it can show."""
    written = draft.written(("orchestration",))
    return bool(written.get("asset_modules") or written.get("dbt") or draft.tree.get("transforms"))


def _check_assets(draft: Draft) -> Iterator[Problem]:
    partitions = draft.names("orchestration", "partitions")
    for pattern, asset in draft.spec.orchestration.assets.items():
        path = ("orchestration", "assets", pattern)
        if asset.partitions is not None and asset.partitions not in partitions:
            otherwise = "Declare it under orchestration.partitions."
            at = (*path, "partitions")
            yield draft.unknown(at, "partitions", asset.partitions, partitions, otherwise)
        needs_cron = asset.automation_condition == "on_cron"
        if needs_cron and draft.lacks(path, AssetConfig, "cron_schedule"):
            hint = "on_cron needs it."
            yield Problem((*path, "cron_schedule"), "is missing", hint, at_key=True)
        if asset.cron_schedule is not None and not needs_cron:
            message = "means nothing without automation_condition: on_cron"
            at, also = (*path, "cron_schedule"), ((*path, "automation_condition"),)
            yield Problem(at, message, "Add that, or remove it.", at_key=True, also=also)
        if asset.automation_condition is not None:
            yield from _check_automated(draft, path, pattern)


def _check_automated(draft: Draft, path: KeyPath, pattern: str) -> Iterator[Problem]:
    """What floe starts when its inputs are ready must not be started by Dagster too."""
    dotted = pattern.replace("/", ".")
    for name, process in draft.spec.processes.items():
        if process.trigger == "process":
            continue
        for output in process.outputs.values():
            if fnmatchcase(output.dataset, dotted):
                message = (
                    f"'{output.dataset}' is made by '{name}', which starts by itself "
                    f"(trigger: {process.trigger})"
                )
                hint = "Use trigger: process there, or a pattern that leaves it out."
                also = (("processes", name, "trigger"), ("processes", name, "outputs"))
                yield Problem((*path, "automation_condition"), message, hint, also=also)
                break


def _check_dbt(draft: Draft) -> Iterator[Problem]:
    dbt = draft.spec.orchestration.dbt
    path = ("orchestration", "dbt")
    if dbt is None or draft.tree.get("transforms"):
        return
    if draft.lacks(path, Dbt, "project_dir", "manifest_path"):
        hint = "Give project_dir, or a dbt project under transforms."
        yield Problem(path, "names no dbt project", hint, at_key=True)
