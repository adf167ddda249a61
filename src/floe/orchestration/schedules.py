"""Schedules: jobs that start at set times.

What a tick requests depends on the partitions of the job:

- Without partitions: one run, for the date of the tick in the schedule's time zone.
- `latest`: the newest time partition that exists at the tick, in the time zone of the partitions.
  A second dimension without time (such as a region) gets one run per key, and so does a job that
  has only static partitions. Of dynamic keys, the newest is the one that was added last.
- `all`: every key that exists at the tick, each in its own run.

Automated assets (automation_condition) are left out of scheduled runs: they react to their inputs,
and a schedule as well would compute everything twice.

When clocks go forward, a tick in the skipped hour happens at its end; when they go back, a daily
tick in the repeated hour happens once. After an outage Dagster runs the last missed tick only;
use a backfill or `on_missing` for the earlier ones.
"""

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from dagster import (
    AssetKey,
    DagsterInvalidDefinitionError,
    DefaultScheduleStatus,
    DynamicPartitionsDefinition,
    MultiPartitionsDefinition,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SkipReason,
    partition_loading_context,
)

from floe.orchestration.jobs import assets_of, inseparable_assets, partitions_of
from floe.orchestration.loading import AnyPartitions, Loading, Parts
from floe.orchestration.partitions import newest_keys
from floe.orchestration.selection import Keys, name_of
from floe.spec.findings import Finding, SpecError
from floe.spec.identity import BUSINESS_DATE_TAG
from floe.spec.orchestration import Schedule

_LOG = logging.getLogger("floe")
_RUNNING, _STOPPED = DefaultScheduleStatus.RUNNING, DefaultScheduleStatus.STOPPED


@dataclass(frozen=True)
class TickEvaluator:
    """Decides what a schedule runs at a tick."""

    zone: str
    partitions: AnyPartitions | None
    all_keys: bool
    """Whether to run all keys, or only the newest."""
    assets: tuple[AssetKey, ...] | None
    """The assets to materialize; None for all assets of the job."""

    def evaluate(self, context: ScheduleEvaluationContext) -> Iterator[RunRequest | SkipReason]:
        """Yield the runs of a tick. Run keys prevent duplicates if a tick is retried."""
        tick = context.scheduled_execution_time.astimezone(UTC)
        if self.partitions is None:
            yield self._dated_run(tick)
            return
        # Only dynamic keys have to be read from the instance.
        store = context.instance if _is_dynamic(self.partitions) else None
        if self.all_keys:
            with partition_loading_context(tick, store):
                keys = self.partitions.get_partition_keys()
        else:
            keys = newest_keys(self.partitions, tick, store)
        if not keys:
            yield SkipReason("No partition exists at this time.")
        yield from (self._partition_run(tick, key) for key in keys)

    def _dated_run(self, tick: datetime) -> RunRequest:
        day = tick.astimezone(ZoneInfo(self.zone)).date().isoformat()
        return RunRequest(
            run_key=tick.isoformat(),
            tags={BUSINESS_DATE_TAG: day},
            asset_selection=self.assets,
        )

    def _partition_run(self, tick: datetime, key: str) -> RunRequest:
        return RunRequest(
            run_key=f"{tick.isoformat()} {key}",
            partition_key=key,
            asset_selection=self.assets,
        )


def _is_dynamic(partitions: AnyPartitions) -> bool:
    if isinstance(partitions, MultiPartitionsDefinition):
        return any(
            _is_dynamic(dimension.partitions_def) for dimension in partitions.partitions_defs
        )
    return isinstance(partitions, DynamicPartitionsDefinition)


def build_schedules(loading: Loading, parts: Parts) -> Parts:
    """Add the schedules that floe.yaml declares."""
    if findings := _check_names(loading):
        raise SpecError(findings)
    declared = loading.site.spec.orchestration.schedules
    schedules = [
        _build_schedule(loading, parts, name, schedule) for name, schedule in declared.items()
    ]
    return replace(parts, schedules=(*parts.schedules, *schedules))


def _check_names(loading: Loading) -> list[Finding]:
    orchestration = loading.site.spec.orchestration
    return [
        loading.finding(
            ("orchestration", "schedules", name),
            "a sensor has the same name",
            "Rename one of them: schedule and sensor names must be unique.",
        )
        for name in orchestration.schedules
        if name in orchestration.sensors
    ]


def _build_schedule(
    loading: Loading, parts: Parts, name: str, schedule: Schedule
) -> ScheduleDefinition:
    keys = assets_of(loading, parts, schedule.job)
    automated = _automated(parts, keys)
    left = keys - automated
    note = _automation_note(automated, left)
    if note:
        _LOG.warning("The schedule '%s' %s", name, note)
    zone = schedule.timezone or loading.site.spec.timezone
    ticking = TickEvaluator(
        zone=zone,
        partitions=partitions_of(parts, left),
        all_keys=schedule.partition_selector == "all",
        assets=tuple(sorted(left)) if automated else None,
    )
    runs = schedule.enabled and bool(left or not keys)
    try:
        return ScheduleDefinition(
            name=name,
            job=parts.jobs[schedule.job],
            cron_schedule=schedule.cron_schedule,
            execution_timezone=zone,
            default_status=_RUNNING if runs else _STOPPED,
            execution_fn=ticking.evaluate if left or not keys else _nothing_left,
            description=_description(schedule, note),
        )
    except DagsterInvalidDefinitionError as error:
        path = ("orchestration", "schedules", name)
        raise loading.refusal(path, str(error).rstrip(".")) from error


def _automated(parts: Parts, keys: Keys) -> Keys:
    """Return the automated assets, and those that cannot run without them."""
    automated = {key for key in keys if parts.specs[key].automation_condition is not None}
    together = inseparable_assets(parts)
    return frozenset(asset for key in automated for asset in together.get(key, {key}))


def _nothing_left(_: ScheduleEvaluationContext) -> SkipReason:
    return SkipReason("All assets of the job are automated (automation_condition).")


def _automation_note(automated: Keys, left: Keys) -> str:
    if not automated:
        return ""
    automated_assets = f"{_listed(automated)} (automated by automation_condition)."
    if left:
        return f"leaves out {automated_assets}"
    return f"is stopped, because all of its assets are automated: {automated_assets}"


def _listed(keys: Collection[AssetKey]) -> str:
    return ", ".join(sorted(name_of(key) for key in keys))


def _description(schedule: Schedule, note: str) -> str | None:
    sentence = f"{note[0].upper()}{note[1:]}" if note else ""
    return " ".join(part for part in (schedule.description, sentence) if part) or None
