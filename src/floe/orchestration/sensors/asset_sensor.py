"""asset_sensor: a job starts when assets have been made.

With `any`, each new materialisation starts a run. With `all`, a run starts once every watched asset
is new since the last one; where the job has partitions, that is so for each partition by itself. A
materialisation without a partition counts for every partition.

The first look takes the newest materialisation of each asset that there is. What a run made that
this sensor led to does not count: a job that makes what it watches would never end.
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

from floe.orchestration.partitions import business_date_of
from floe.orchestration.parts import AnyPartitions
from floe.orchestration.selection import name_of
from floe.orchestration.sensors.starting import Cause, Declared, Starter
from floe.spec.findings import SpecError
from floe.spec.identity import BUSINESS_DATE_TAG
from floe.spec.nearby import suggest
from floe.spec.orchestration import AssetSensor

MOST_AT_ONCE = 200
"""How many materialisations of an asset one look takes; the others come with the next."""
MOST_WAITING = 2_000
"""For how many partitions it is remembered which assets are new."""
_EVERY = ""
"""What stands for all partitions."""

Tags = Mapping[str, str]


@dataclass(frozen=True)
class Made:
    """A watched asset was made."""

    asset: str
    place: int
    """Its place in Dagster's log."""
    partition: str | None
    run_id: str


@dataclass
class Position:
    """Up to where the log was read, and what is new and waits for the other assets."""

    seen: dict[str, int]
    waiting: dict[str, dict[str, int]]
    """By partition: the assets that are new, and their places in the log."""

    @classmethod
    def read(cls, cursor: str | None) -> "Position":
        kept = json.loads(cursor or "{}")
        return cls(kept.get("seen", {}), kept.get("waiting", {}))

    def written(self) -> str:
        newest = dict(list(self.waiting.items())[-MOST_WAITING:])
        return json.dumps({"seen": self.seen, "waiting": newest})


@dataclass(frozen=True)
class Watch:
    """Reads what was made of the watched assets, and asks for runs."""

    assets: Mapping[str, AssetKey]
    partitions: Mapping[str, AnyPartitions | None]
    wants_all: bool
    starter: Starter

    def evaluate(self, context: SensorEvaluationContext) -> SensorResult:
        """Look once."""
        position = Position.read(context.cursor)
        made = sorted(self._read(context.instance, position), key=lambda one: one.place)
        tags = _tags_of_runs(context.instance, made)
        new = [one for one in made if not self.starter.led_to(tags.get(one.run_id, {}))]
        for one in made:
            position.seen[one.asset] = max(one.place, position.seen.get(one.asset, 0))
        react = self._when_all if self.wants_all else self._for_each
        requests = list(react(context.instance, new, tags, position))
        cursor = position.written()
        if requests:
            return SensorResult(run_requests=requests, cursor=cursor)
        return SensorResult(skip_reason=self._nothing(position), cursor=cursor)

    def _read(self, instance: DagsterInstance, position: Position) -> Iterator[Made]:
        for name, key in self.assets.items():
            after = position.seen.get(name)
            # Without a place to go on from, the newest alone: what was before is history.
            records = instance.fetch_materializations(
                AssetRecordsFilter(asset_key=key, after_storage_id=after),
                limit=1 if after is None else MOST_AT_ONCE,
                ascending=after is not None,
            ).records
            yield from (_made(name, record) for record in records)
            if after is None:
                position.seen[name] = 0

    def _for_each(
        self, instance: DagsterInstance, new: Sequence[Made], tags: Mapping[str, Tags], _: Position
    ) -> Iterator[RunRequest]:
        for one in new:
            parent = tags.get(one.run_id, {})
            cause = Cause(
                key=f"{one.asset} {one.place}",
                partition=one.partition,
                tags=self._dated(one, parent),
                parent_tags=parent,
            )
            yield from self.starter.requests(instance, cause)

    def _when_all(
        self,
        instance: DagsterInstance,
        new: Sequence[Made],
        tags: Mapping[str, Tags],
        position: Position,
    ) -> Iterator[RunRequest]:
        waiting = position.waiting
        for one in new:
            known = self.starter.has_key(instance, one.partition)
            partition = str(one.partition) if known else _EVERY
            waiting.setdefault(partition, {})[one.asset] = one.place
        for_every = waiting.get(_EVERY, {})
        complete = {
            partition: {**for_every, **places}
            for partition, places in waiting.items()
            if {*for_every, *places} >= self.assets.keys()
        }
        parents = {one.asset: tags.get(one.run_id, {}) for one in new}
        for partition, places in complete.items():
            key = " ".join([partition, *(f"{name}:{places[name]}" for name in sorted(places))])
            last = max(places, key=lambda name: places[name])
            cause = Cause(key.strip(), partition or None, parent_tags=parents.get(last, {}))
            yield from self.starter.requests(instance, cause)
        if complete:
            for partition in {_EVERY, *complete}:
                waiting.pop(partition, None)

    def _dated(self, one: Made, parent: Tags) -> Tags:
        """Hand the business date on to a job that has no partitions to tell it."""
        if self.starter.partitions is not None:
            return {}
        partitions = self.partitions[one.asset]
        if one.partition is not None and partitions is not None:
            day = business_date_of(partitions, one.partition)
            return {} if day is None else {BUSINESS_DATE_TAG: day.isoformat()}
        return {tag: parent[tag] for tag in (BUSINESS_DATE_TAG,) if tag in parent}

    def _nothing(self, position: Position) -> str:
        names = sorted(self.assets)
        if not self.wants_all:
            return f"None of these was made: {', '.join(names)}."
        new = {name for places in position.waiting.values() for name in places}
        missing = [name for name in names if name not in new]
        return f"Not all are new: {', '.join(missing or names)}."


def _made(name: str, record: EventLogRecord) -> Made:
    return Made(name, record.storage_id, record.partition_key, record.run_id)


def _tags_of_runs(instance: DagsterInstance, made: Sequence[Made]) -> Mapping[str, Tags]:
    """Return the tags of the runs that made them; a change from outside has no run."""
    run_ids = sorted({one.run_id for one in made if one.run_id})
    records = instance.get_run_records(RunsFilter(run_ids=run_ids)) if run_ids else ()
    return {record.dagster_run.run_id: record.dagster_run.tags for record in records}


def build_asset_sensor(declared: Declared, sensor: AssetSensor) -> SensorDefinition:
    """Make the sensor; an asset that does not exist refuses to load."""
    specs = declared.parts.specs
    known = {name_of(key): key for key in specs}
    names = [name.replace("/", ".") for name in sensor.watched_assets]
    findings = [
        declared.loading.finding(
            (*declared.path, "watched_assets", place),
            f"there is no asset '{sensor.watched_assets[place]}'",
            suggest(name, known),
        )
        for place, name in enumerate(names)
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
