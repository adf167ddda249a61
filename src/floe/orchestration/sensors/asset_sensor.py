"""asset_sensor: start a job when assets are materialized.

With `any`, each new materialization starts a run. With `all`, a run starts once every watched asset
has a new materialization since the last run; if the job has partitions, separately for each
partition. A materialization without a partition counts for every partition.

The first evaluation takes only the newest materialization of each asset. Materializations of runs
that this sensor triggered do not count: a job that watches its own assets would run forever.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagster import (
    AssetKey,
    AssetRecordsFilter,
    DagsterInstance,
    EventLogRecord,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
)

from floe.orchestration.business_dates import business_date_of
from floe.orchestration.loading import AnyPartitions
from floe.orchestration.selection import name_of
from floe.orchestration.sensors.run_requests import Cause, DeclaredSensor, Starter
from floe.spec.findings import SpecError
from floe.spec.identity import BUSINESS_DATE_TAG
from floe.spec.nearby import suggest
from floe.spec.orchestration import AssetSensor

MOST_AT_ONCE = 200
"""Materializations of an asset per evaluation; the next one takes the rest."""
MOST_WAITING = 2_000
"""Partitions for which new assets are remembered."""
_EVERY = ""
"""Key for materializations that count for all partitions."""

Tags = Mapping[str, str]


@dataclass(frozen=True)
class Materialization:
    """A materialization of a watched asset."""

    asset: str
    position: int
    """Its position in Dagster's event log."""
    partition: str | None
    run_id: str


@dataclass
class Cursor:
    """The log positions that were read, and new assets that wait for the others."""

    seen: dict[str, int]
    waiting: dict[str, dict[str, int]]
    """By partition: the new assets and their log positions."""

    @classmethod
    def parse(cls, cursor: str | None) -> "Cursor":
        stored = json.loads(cursor or "{}")
        return cls(stored.get("seen", {}), stored.get("waiting", {}))

    def dump(self) -> str:
        newest = dict(list(self.waiting.items())[-MOST_WAITING:])
        return json.dumps({"seen": self.seen, "waiting": newest})


@dataclass(frozen=True)
class Watch:
    """Reads new materializations of the watched assets, and requests runs."""

    assets: Mapping[str, AssetKey]
    partitions: Mapping[str, AnyPartitions | None]
    wants_all: bool
    starter: Starter

    def evaluate(self, context: SensorEvaluationContext) -> SensorResult:
        """Evaluate the sensor once."""
        cursor = Cursor.parse(context.cursor)
        events = sorted(self._read(context.instance, cursor), key=lambda event: event.position)
        tags = _tags_by_run(context.instance, events)
        new = [event for event in events if not self.starter.triggered(tags.get(event.run_id, {}))]
        for event in events:
            cursor.seen[event.asset] = max(event.position, cursor.seen.get(event.asset, 0))
        react = self._when_all if self.wants_all else self._for_each
        requests = list(react(context.instance, new, tags, cursor))
        dumped = cursor.dump()
        if requests:
            return SensorResult(run_requests=requests, cursor=dumped)
        return SensorResult(skip_reason=self._skip_reason(cursor), cursor=dumped)

    def _read(self, instance: DagsterInstance, cursor: Cursor) -> Iterator[Materialization]:
        for name, key in self.assets.items():
            after = cursor.seen.get(name)
            # Without a stored position, take only the newest: older ones are history.
            records = instance.fetch_materializations(
                AssetRecordsFilter(asset_key=key, after_storage_id=after),
                limit=1 if after is None else MOST_AT_ONCE,
                ascending=after is not None,
            ).records
            yield from (_materialization(name, record) for record in records)
            if after is None:
                cursor.seen[name] = 0

    def _for_each(
        self,
        instance: DagsterInstance,
        new: Sequence[Materialization],
        tags: Mapping[str, Tags],
        _: Cursor,
    ) -> Iterator[RunRequest]:
        for event in new:
            parent = tags.get(event.run_id, {})
            cause = Cause(
                key=f"{event.asset} {event.position}",
                partition=event.partition,
                tags=self._date_tags(event, parent),
                parent_tags=parent,
            )
            yield from self.starter.requests(instance, cause)

    def _when_all(
        self,
        instance: DagsterInstance,
        new: Sequence[Materialization],
        tags: Mapping[str, Tags],
        cursor: Cursor,
    ) -> Iterator[RunRequest]:
        waiting = cursor.waiting
        for event in new:
            known = self.starter.has_key(instance, event.partition)
            partition = str(event.partition) if known else _EVERY
            waiting.setdefault(partition, {})[event.asset] = event.position
        for_every = waiting.get(_EVERY, {})
        complete = {
            partition: {**for_every, **positions}
            for partition, positions in waiting.items()
            if {*for_every, *positions} >= self.assets.keys()
        }
        parents = {event.asset: tags.get(event.run_id, {}) for event in new}
        for partition, positions in complete.items():
            key = " ".join(
                [partition, *(f"{name}:{positions[name]}" for name in sorted(positions))]
            )
            last = max(positions, key=lambda name: positions[name])
            cause = Cause(key.strip(), partition or None, parent_tags=parents.get(last, {}))
            yield from self.starter.requests(instance, cause)
        if complete:
            for partition in {_EVERY, *complete}:
                waiting.pop(partition, None)

    def _date_tags(self, event: Materialization, parent: Tags) -> Tags:
        """Return a business date tag for a job without partitions."""
        if self.starter.partitions is not None:
            return {}
        partitions = self.partitions[event.asset]
        if event.partition is not None and partitions is not None:
            day = business_date_of(partitions, event.partition)
            return {} if day is None else {BUSINESS_DATE_TAG: day.isoformat()}
        return {tag: parent[tag] for tag in (BUSINESS_DATE_TAG,) if tag in parent}

    def _skip_reason(self, cursor: Cursor) -> str:
        names = sorted(self.assets)
        if not self.wants_all:
            return f"No new materialization of: {', '.join(names)}."
        new = {name for positions in cursor.waiting.values() for name in positions}
        missing = [name for name in names if name not in new]
        return f"Waiting for a new materialization of: {', '.join(missing or names)}."


def _materialization(name: str, record: EventLogRecord) -> Materialization:
    return Materialization(name, record.storage_id, record.partition_key, record.run_id)


def _tags_by_run(
    instance: DagsterInstance, events: Sequence[Materialization]
) -> Mapping[str, Tags]:
    """Return the tags of the runs by id. External materializations have no run."""
    run_ids = sorted({event.run_id for event in events if event.run_id})
    records = instance.get_run_records(RunsFilter(run_ids=run_ids)) if run_ids else ()
    return {record.dagster_run.run_id: record.dagster_run.tags for record in records}


def build_asset_sensor(declared: DeclaredSensor, sensor: AssetSensor) -> SensorDefinition:
    """Build the sensor; reject unknown assets."""
    specs = declared.parts.specs
    known = {name_of(key): key for key in specs}
    names = [name.replace("/", ".") for name in sensor.watched_assets]
    findings = [
        declared.loading.finding(
            (*declared.path, "watched_assets", index),
            f"there is no asset '{sensor.watched_assets[index]}'",
            suggest(name, known),
        )
        for index, name in enumerate(names)
        if name not in known
    ]
    if findings:
        raise SpecError(findings)
    watch = Watch(
        assets={name: known[name] for name in names},
        partitions={name: specs[known[name]].partitions_def for name in names},
        wants_all=sensor.when == "all",
        starter=declared.starter(sensor.job),
    )
    return declared.define(sensor, sensor.job, watch.evaluate)
