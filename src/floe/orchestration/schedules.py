"""Schedules: jobs that start by the clock.

What a tick asks for depends on what the job makes:

- Without partitions: one run, whose business date is that of the tick in the schedule's zone.
- `latest`: the newest key of time that exists at the tick, in the zone of the partitions. A
  dimension without time beside it (a region) is run for each of its keys, and so is a job that has
  only such; of keys that are added while the platform runs, the newest is the one added last.
- `all`: every key that exists at the tick, each in a run of its own.

Assets that are made by themselves (automation_condition) are left out of scheduled runs: what
reacts to its inputs needs no clock, and two starters would make everything twice.

In the night in which the clocks go forward, a tick in the hour that is skipped comes at its end;
in the night in which they go back, a daily tick in the hour that is repeated comes once. After
an outage Dagster makes up for the last tick that was missed, not for those before it: what they
would have made is for a backfill, or for `on_missing`.
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

from floe.orchestration.jobs import assets_of, made_together, partitions_of
from floe.orchestration.loading import Loading
from floe.orchestration.newest import newest_keys
from floe.orchestration.parts import AnyPartitions, Parts
from floe.orchestration.selection import Keys, name_of
from floe.spec.findings import Finding, SpecError
from floe.spec.identity import BUSINESS_DATE_TAG
from floe.spec.orchestration import Schedule

_LOG = logging.getLogger("floe")
_RUNNING, _STOPPED = DefaultScheduleStatus.RUNNING, DefaultScheduleStatus.STOPPED


@dataclass(frozen=True)
class Ticking:
    """What a schedule needs to know when its time has come."""

    zone: str
    partitions: AnyPartitions | None
    everything: bool
    """Whether all keys are wanted, or the newest alone."""
    assets: tuple[AssetKey, ...] | None
    """The assets to make; None: all of the job's."""

    def evaluate(self, context: ScheduleEvaluationContext) -> Iterator[RunRequest | SkipReason]:
        """Say what to run at a tick. Each run has a key: a tick that is tried again adds none."""
        tick = context.scheduled_execution_time.astimezone(UTC)
        if self.partitions is None:
            yield self._dated_run(tick)
            return
        # Only keys that are added at run time have to be asked for.
        store = context.instance if _is_dynamic(self.partitions) else None
        if self.everything:
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
        return any(_is_dynamic(one.partitions_def) for one in partitions.partitions_defs)
    return isinstance(partitions, DynamicPartitionsDefinition)


def build_schedules(loading: Loading, parts: Parts) -> Parts:
    """Add the schedules that floe.yaml declares."""
    if findings := _check_names(loading):
        raise SpecError(findings)
    declared = loading.site.spec.orchestration.schedules
    made = [_build_schedule(loading, parts, name, one) for name, one in declared.items()]
    return replace(parts, schedules=(*parts.schedules, *made))


def _check_names(loading: Loading) -> list[Finding]:
    orchestration = loading.site.spec.orchestration
    return [
        loading.finding(
            ("orchestration", "schedules", name),
            "a sensor has the same name",
            "Give one of them another: Dagster keeps both under one roof.",
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
    said = _said_of(automated, left)
    if said:
        _LOG.warning("The schedule '%s' %s", name, said)
    zone = schedule.timezone or loading.site.spec.timezone
    ticking = Ticking(
        zone=zone,
        partitions=partitions_of(parts, left),
        everything=schedule.partition_selector == "all",
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
            description=_described(schedule, said),
        )
    except DagsterInvalidDefinitionError as error:
        path = ("orchestration", "schedules", name)
        raise loading.refusal(path, str(error).rstrip(".")) from error


def _automated(parts: Parts, keys: Keys) -> Keys:
    """Return which assets are made by themselves, and those that cannot be made without them."""
    by_themselves = {key for key in keys if parts.specs[key].automation_condition is not None}
    together = made_together(parts)
    return frozenset(one for key in by_themselves for one in together.get(key, {key}))


def _nothing_left(_: ScheduleEvaluationContext) -> SkipReason:
    return SkipReason("All assets of the job are made by themselves (automation_condition).")


def _said_of(automated: Keys, left: Keys) -> str:
    if not automated:
        return ""
    why = f"{_listed(automated)}: made by themselves (automation_condition)."
    if left:
        return f"leaves out {why}"
    return f"is stopped, for it would leave out all of its assets, {why}"


def _listed(keys: Collection[AssetKey]) -> str:
    return ", ".join(sorted(name_of(key) for key in keys))


def _described(schedule: Schedule, said: str) -> str | None:
    sentence = f"{said[0].upper()}{said[1:]}" if said else ""
    return " ".join(part for part in (schedule.description, sentence) if part) or None
