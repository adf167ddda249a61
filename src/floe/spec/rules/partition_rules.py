"""Rules for partitions and backfills."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice, pairwise

from floe.spec.findings import KeyPath, Problem
from floe.spec.nearby import suggest
from floe.spec.orchestration import Backfill, BatchJob
from floe.spec.partitions import (
    MultiPartitions,
    StaticPartitions,
    TimeWindow,
    is_tick,
    parse_bound,
    parse_key,
    ticks,
)
from floe.spec.rules.draft import Draft, unknown_calendar
from floe.spec.rules.orchestration_rules import assets_are_discovered

_PLAIN = re.compile(r"[A-Za-z0-9_.*?/-]+")
"""A selector that is a plain name or pattern."""
_TICKS_COMPARED = 60
"""Enough for two months of days, or every hour of two days."""


def check_partitions(draft: Draft) -> Iterator[Problem]:
    """Find partitions without keys or with duplicate keys, and backfills out of range."""
    for name, partitions in draft.spec.orchestration.partitions.items():
        path = ("orchestration", "partitions", name)
        yield from _check_definition(draft, path, partitions)
        if isinstance(partitions, MultiPartitions):
            for dimension, inner in partitions.partitions.items():
                at = (*path, "partitions", dimension)
                yield from _check_dimension(draft, at, inner)
    for name, backfill in draft.spec.orchestration.backfills.items():
        yield from _check_backfill(draft, ("orchestration", "backfills", name), backfill)


def _check_definition(draft: Draft, path: KeyPath, partitions: object) -> Iterator[Problem]:
    if isinstance(partitions, TimeWindow):
        yield from unknown_calendar(draft, (*path, "calendar"), partitions.calendar)
        yield from _check_window(path, partitions)
    elif isinstance(partitions, StaticPartitions):
        keys = partitions.partition_keys
        for index, key in enumerate(keys):
            if key in keys[:index]:
                at = (*path, "partition_keys", index)
                yield Problem(at, f"the key '{key}' is duplicated", "Keep one of them.")


def _check_dimension(draft: Draft, path: KeyPath, inner: object) -> Iterator[Problem]:
    if not isinstance(inner, str):
        yield from _check_definition(draft, path, inner)
        return
    known = draft.names("orchestration", "partitions")
    if inner not in known:
        otherwise = "Declare it under orchestration.partitions."
        yield draft.unknown(path, "partitions", inner, known, otherwise)
    elif isinstance(draft.spec.orchestration.partitions.get(inner), MultiPartitions):
        message = f"'{inner}' already has several dimensions"
        yield Problem(path, message, "Use partitions with one dimension.")


def _check_window(path: KeyPath, window: TimeWindow) -> Iterator[Problem]:
    start = parse_bound(window, window.start)
    end = parse_bound(window, window.end) if window.end is not None else None
    fmt = ((*path, "fmt"),)
    if start is None:
        yield Problem((*path, "start"), *_not_a_key(window, window.start), also=fmt)
    if window.end is not None and end is None:
        yield Problem((*path, "end"), *_not_a_key(window, window.end), also=fmt)
    if start is None or (window.end is not None and end is None):
        return
    bounds = ((*path, "start"), (*path, "end"), (*path, "cron_schedule"), *fmt)
    if end is not None and end <= start:
        message = f"the end {window.end} is not after the start {window.start}"
        yield Problem((*path, "end"), message, "Swap them, or change one.", also=bounds)
        return
    if end is not None and next(ticks(window, start)) >= end:
        message = f"no window of '{window.cron_schedule}' begins between start and end"
        at = (*path, "cron_schedule")
        yield Problem(at, message, "Move the end, or use a finer schedule.", also=bounds)
    for tick, after in pairwise(islice(ticks(window, start), _TICKS_COMPARED)):
        key = tick.strftime(window.fmt)
        if key == after.strftime(window.fmt):
            message = f"two windows of '{window.cron_schedule}' would have the key '{key}'"
            hint = "Use a finer fmt, such as %Y-%m-%d-%H:%M, or a coarser schedule."
            yield Problem((*path, "cron_schedule"), message, hint, also=bounds)
            return


def _not_a_key(window: TimeWindow, text: str) -> tuple[str, str]:
    return f"'{text}' does not match the format {window.fmt}", "Write a date such as 2026-09-01."


def _check_backfill(draft: Draft, path: KeyPath, backfill: Backfill) -> Iterator[Problem]:
    known = draft.names("orchestration", "partitions")
    if backfill.partitions is not None and backfill.partitions not in known:
        otherwise = "Declare it under orchestration.partitions."
        at = (*path, "partitions")
        yield draft.unknown(at, "partitions", backfill.partitions, known, otherwise)
        return
    if _has_no_partitions(draft, backfill.job):
        message = f"the assets of '{backfill.job}' have no partitions"
        hint = "Declare partitions under orchestration.assets, or name another job."
        job = ("orchestration", "jobs", backfill.job)
        yield Problem((*path, "job"), message, hint, also=(job, (*job, "selection")))
        return
    name = backfill.partitions or partitions_of_job(draft, backfill.job)
    partitions = draft.spec.orchestration.partitions.get(name or "")
    at = (*path, "partition_range")
    if isinstance(partitions, TimeWindow):
        yield from _check_time_range(at, backfill, str(name), partitions)
    elif isinstance(partitions, StaticPartitions):
        yield from _check_static_range(at, backfill, str(name), partitions)


def partitions_of_job(draft: Draft, job_name: str) -> str | None:
    """Return the partition definition of a job's assets, if floe.yaml determines it."""
    orchestration = draft.spec.orchestration
    job = orchestration.jobs.get(job_name)
    if not isinstance(job, BatchJob):
        return None
    names = {name for selector in job.selection for name in _partitions_of(draft, selector)}
    if not names:
        names = set(orchestration.partitions)
    return names.pop() if len(names) == 1 else None


def _has_no_partitions(draft: Draft, job_name: str) -> bool:
    """Return whether a job certainly has no partitioned assets.

    This is known only for plain names and patterns, and only if loading adds no further assets.
    """
    job = draft.spec.orchestration.jobs.get(job_name)
    if not isinstance(job, BatchJob) or assets_are_discovered(draft):
        return False
    plain = all(_PLAIN.fullmatch(selector) for selector in job.selection)
    written = draft.length(("orchestration", "jobs", job_name, "selection"))
    whole = written == len(job.selection)
    names = (name for selector in job.selection for name in _partitions_of(draft, selector))
    return plain and whole and next(names, None) is None


def _partitions_of(draft: Draft, selector: str) -> Iterator[str]:
    kind, _, value = selector.rpartition(":")
    wanted = value.strip("+0123456789").replace("/", ".")
    for pattern, asset in draft.spec.orchestration.assets.items():
        dotted = pattern.replace("/", ".")
        overlaps = fnmatchcase(wanted, dotted) or fnmatchcase(dotted, wanted)
        matches = asset.group_name == value if kind == "group" else overlaps
        if asset.partitions is not None and matches:
            yield asset.partitions
    for name, dataset in draft.spec.datasets.items():
        if kind != "group" and dataset.partitions is not None and fnmatchcase(name, wanted):
            yield dataset.partitions


def _check_time_range(
    path: KeyPath, backfill: Backfill, name: str, window: TimeWindow
) -> Iterator[Problem]:
    definition = ("orchestration", "partitions", name)
    also = tuple((*definition, key) for key in ("start", "end", "fmt", "cron_schedule"))
    times = []
    for key in ("start", "end"):
        written = getattr(backfill.partition_range, key)
        problem = _outside(window, written, name)
        times.append(parse_key(window, written))
        if problem is not None:
            yield Problem((*path, key), problem[0], problem[1], also=also)
    start, end = times
    if start is not None and end is not None and end < start:
        yield _reversed(path, backfill)


def _outside(window: TimeWindow, key: str, name: str) -> tuple[str, str] | None:
    """Return why a key is not valid for a window, or None if it is."""
    time = parse_key(window, key)
    first = parse_bound(window, window.start)
    last = parse_bound(window, window.end) if window.end is not None else None
    if time is None:
        return f"'{key}' is not a key of '{name}'", f"Write it as {window.fmt}."
    if first is not None and time < first:
        return f"'{key}' is before the start of '{name}'", f"It starts at {window.start}."
    if last is not None and time >= last:
        return f"'{key}' is after the end of '{name}'", f"It ends before {window.end}."
    if not is_tick(window, time):
        after = next(ticks(window, time)).strftime(window.fmt)
        return f"'{key}' is not a key of '{name}': no window begins then", f"The next is {after}."
    return None


def _check_static_range(
    path: KeyPath, backfill: Backfill, name: str, partitions: StaticPartitions
) -> Iterator[Problem]:
    keys = partitions.partition_keys
    also: tuple[KeyPath, ...] = (("orchestration", "partitions", name, "partition_keys"),)
    range_ = backfill.partition_range
    for at, key in (("start", range_.start), ("end", range_.end)):
        if key not in keys:
            message = f"'{key}' is not a key of '{name}'"
            yield Problem((*path, at), message, suggest(key, keys), also=also)
    if (
        range_.start in keys
        and range_.end in keys
        and keys.index(range_.end) < keys.index(range_.start)
    ):
        yield _reversed(path, backfill)


def _reversed(path: KeyPath, backfill: Backfill) -> Problem:
    range_ = backfill.partition_range
    message = f"the end {range_.end} is before the start {range_.start}"
    return Problem((*path, "end"), message, "Swap them.", also=((*path, "start"),))
