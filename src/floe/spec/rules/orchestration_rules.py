"""Rules for jobs, schedules, sensors and asset patterns."""

import keyword
from collections.abc import Iterator
from fnmatch import fnmatchcase

from pydantic_core import PydanticCustomError

from floe.spec.findings import KeyPath, Problem
from floe.spec.names import check_glob, check_regex
from floe.spec.orchestration import (
    AssetConfig,
    AssetSensor,
    Dbt,
    FileWatcherSensor,
    RunStatusSensor,
)
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
"""Names that Dagster reserves, including Python keywords."""


def check_orchestration(draft: Draft) -> Iterator[Problem]:
    """Find unknown references and contradictory settings."""
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
                yield Problem(path, "is a name that Dagster reserves", "Rename it.", at_key=True)


def _check_jobs_named(draft: Draft) -> Iterator[Problem]:
    orchestration = draft.spec.orchestration
    named = [
        (("orchestration", section, name, "job"), element.job)
        for section, elements in (
            ("schedules", orchestration.schedules),
            ("sensors", orchestration.sensors),
            ("backfills", orchestration.backfills),
        )
        for name, element in elements.items()
        if element.job is not None
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
                yield Problem(path, "has no job and no channel", hint, at_key=True)


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
    """Find unknown watched assets, if Python or dbt cannot add further assets."""
    if assets_are_discovered(draft):
        return
    datasets = draft.names("datasets")
    for index, asset in enumerate(sensor.watched_assets):
        if asset.replace("/", ".") not in datasets:
            otherwise = "Declare it under datasets."
            at = (*path, "watched_assets", index)
            yield draft.unknown(at, "dataset", asset, datasets, otherwise)


def assets_are_discovered(draft: Draft) -> bool:
    """Return whether the project has assets that are known only when it is loaded."""
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
            message = "has no effect without automation_condition: on_cron"
            at, also = (*path, "cron_schedule"), ((*path, "automation_condition"),)
            yield Problem(
                at, message, "Add the condition, or remove this key.", at_key=True, also=also
            )
        if asset.automation_condition is not None:
            yield from _check_automated(draft, path, pattern)


def _check_automated(draft: Draft, path: KeyPath, pattern: str) -> Iterator[Problem]:
    """Find assets that both floe (when inputs are ready) and Dagster would start."""
    dotted = pattern.replace("/", ".")
    for name, process in draft.spec.processes.items():
        if process.trigger == "process":
            continue
        for output in process.outputs.values():
            if fnmatchcase(output.dataset, dotted):
                message = (
                    f"'{output.dataset}' is written by '{name}', which floe starts "
                    f"(trigger: {process.trigger})"
                )
                hint = "Use trigger: process there, or a pattern that excludes it."
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
