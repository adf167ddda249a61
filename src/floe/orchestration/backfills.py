"""Backfills: ranges of partitions, checked against the assets that are to be made for them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from dagster import (
    AssetKey,
    AssetsDefinition,
    DynamicPartitionsDefinition,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    OpDefinition,
    TimeWindowPartitionsDefinition,
)

from floe.errors import FloeError
from floe.orchestration.jobs import assets_of, by_partitions_of, made_together
from floe.orchestration.loading import Loading
from floe.orchestration.parts import AnyPartitions, Parts
from floe.orchestration.ranges import keys_in_range
from floe.orchestration.selection import name_of
from floe.spec.findings import Finding, KeyPath, SpecError
from floe.spec.nearby import suggest
from floe.spec.orchestration import Backfill

Bound = Literal["start", "end"]
SEPARATOR = "|"
"""Stands between the dimensions of a key that has several."""


class NoSuchRangeError(FloeError):
    """A range begins or ends with a key that there is not, or ends before it begins."""

    exit_code = 2

    def __init__(self, bound: Bound, message: str, hint: str) -> None:
        self.bound: Bound = bound
        self.message = message
        self.hint = hint
        super().__init__(f"{message[0].upper()}{message[1:]}. {hint}".strip())


@dataclass(frozen=True)
class Reach:
    """What a backfill is to make: assets of a job, for partitions."""

    job: str
    partitions: AnyPartitions
    assets: frozenset[AssetKey]
    together: Mapping[AssetKey, frozenset[AssetKey]]
    """For each asset that is never made alone, all that are made with it and itself."""

    def missing(self, made: frozenset[AssetKey]) -> frozenset[AssetKey]:
        """Return which assets are to be made when some are."""
        lacking = self.assets - made
        return frozenset(one for key in lacking for one in self.together.get(key, {key}))


def check_backfills(loading: Loading, parts: Parts) -> Parts:
    """Refuse backfills that could not be made. They are no part of Dagster's definitions."""
    findings: list[Finding] = []
    for name in loading.site.spec.orchestration.backfills:
        try:
            findings += _check(loading, parts, name)
        except SpecError as error:
            findings += error.findings
    if findings:
        raise SpecError(findings)
    return parts


def reach_of(loading: Loading, parts: Parts, name: str) -> Reach:
    """Return which assets a backfill makes, and by which partitions."""
    backfill = loading.site.spec.orchestration.backfills[name]
    path = ("orchestration", "backfills", name)
    by_partitions = by_partitions_of(parts, assets_of(loading, parts, backfill.job))
    partitions = _chosen(loading, parts, path, backfill, list(by_partitions))
    assets = frozenset(by_partitions[partitions])
    return Reach(backfill.job, partitions, assets, made_together(parts))


def keys_of_range(partitions: AnyPartitions, start: str, end: str) -> Sequence[str]:
    """Return the keys from one to another in order; both must exist.

    Of keys with several dimensions the one of time is enough: all others are meant then.
    """
    if not isinstance(partitions, MultiPartitionsDefinition):
        _check_bounds(partitions, start, end)
        return keys_in_range(partitions, start, end)
    first = _parts_of(partitions, start, "start")
    last = _parts_of(partitions, end, "end")
    for dimension in partitions.partitions_defs:
        name = dimension.name
        _check_bounds(dimension.partitions_def, first[name], last[name])
    return keys_in_range(partitions, MultiPartitionKey(first), MultiPartitionKey(last))


def _chosen(
    loading: Loading, parts: Parts, path: KeyPath, backfill: Backfill, found: list[AnyPartitions]
) -> AnyPartitions:
    if not found:
        message = f"the assets of '{backfill.job}' have no partitions"
        hint = "Give them some under orchestration.assets, or name another job."
        raise loading.refusal((*path, "job"), message, hint)
    if backfill.partitions is None:
        if len(found) > 1:
            message = f"the assets of '{backfill.job}' follow {len(found)} partition definitions"
            raise loading.refusal(path, message, "Say by which to go, with partitions.")
        return found[0]
    wanted = parts.partitions[backfill.partitions]
    if wanted not in found:
        message = f"no asset of '{backfill.job}' follows '{backfill.partitions}'"
        names = [name for name, one in parts.partitions.items() if one in found]
        hint = f"They follow {', '.join(names)}." if names else "Leave it out."
        raise loading.refusal((*path, "partitions"), message, hint)
    return wanted


def _functions(parts: Parts, keys: frozenset[AssetKey]) -> Iterator[AssetsDefinition]:
    for one in parts.assets:
        if isinstance(one, AssetsDefinition) and one.keys & keys:
            yield one


def _check(loading: Loading, parts: Parts, name: str) -> Iterator[Finding]:
    reach = reach_of(loading, parts, name)
    backfill = loading.site.spec.orchestration.backfills[name]
    path = ("orchestration", "backfills", name)
    for one in _functions(parts, reach.assets):
        if (wrong := _too_many(one, backfill.batch_size)) is not None:
            yield loading.finding((*path, "batch_size"), *wrong)
    if _is_dynamic(reach.partitions):
        return  # its keys are in Dagster's database: they are looked at when it is run
    wanted = backfill.partition_range
    try:
        keys_of_range(reach.partitions, wanted.start, wanted.end)
    except NoSuchRangeError as error:
        yield loading.finding((*path, "partition_range", error.bound), error.message, error.hint)


def _too_many(function: AssetsDefinition, size: int) -> tuple[str, str] | None:
    """Say why one run cannot take so many partitions of an asset; None, when it can."""
    name = ", ".join(sorted(map(name_of, function.keys)))
    policy = function.backfill_policy
    if policy is not None:
        most = policy.max_partitions_per_run
        if most is None or size <= most:
            return None
        return f"is {size}, and {name} takes at most {most} in one run", f"Use {most} or less."
    if size == 1 or isinstance(function.node_def, OpDefinition):
        return None
    message = f"is {size}, and {name} is a graph of ops, which know one partition at a time"
    return message, "Use 1, or give the asset a backfill_policy if its ops know ranges."


def _is_dynamic(partitions: AnyPartitions) -> bool:
    if isinstance(partitions, MultiPartitionsDefinition):
        return any(_is_dynamic(one.partitions_def) for one in partitions.partitions_defs)
    return isinstance(partitions, DynamicPartitionsDefinition)


def _parts_of(partitions: MultiPartitionsDefinition, key: str, bound: Bound) -> dict[str, str]:
    """Return a key by dimension; with that of time alone, the others are their first or last."""
    names = partitions.partition_dimension_names
    if SEPARATOR in key:
        parts = key.split(SEPARATOR)
        if len(parts) == len(names):
            return dict(zip(names, parts, strict=True))
    elif partitions.has_time_window_dimension:
        time = partitions.time_window_dimension.name
        place = 0 if bound == "start" else -1
        others = {
            one.name: one.partitions_def.get_partition_keys()
            for one in partitions.partitions_defs
            if one.name != time
        }
        for name, keys in others.items():
            if not keys:
                raise NoSuchRangeError(bound, f"'{name}' has no keys yet", "Add some first.")
        return {**{name: keys[place] for name, keys in others.items()}, time: key}
    shape = SEPARATOR.join(names)
    raise NoSuchRangeError(bound, f"'{key}' is no key of {shape}", f"Write it as {shape}.")


def _check_bounds(partitions: AnyPartitions, start: str, end: str) -> None:
    if isinstance(partitions, TimeWindowPartitionsDefinition):
        places = [_moment(partitions, bound, key) for bound, key in _bounds(start, end)]
    else:
        keys = list(partitions.get_partition_keys())
        places = [_place(keys, bound, key) for bound, key in _bounds(start, end)]
    if places[1] < places[0]:
        message = f"the end {end} is before the start {start}"
        raise NoSuchRangeError("end", message, "Exchange them.")


def _bounds(start: str, end: str) -> Sequence[tuple[Bound, str]]:
    return [("start", start), ("end", end)]


def _place(keys: list[str], bound: Bound, key: str) -> float:
    if key in keys:
        return keys.index(key)
    hint = suggest(key, keys) or "There are no keys yet: add some first."
    raise NoSuchRangeError(bound, f"there is no partition '{key}'", hint)


def _moment(partitions: TimeWindowPartitionsDefinition, bound: Bound, key: str) -> float:
    if partitions.has_partition_key(key):
        return partitions.start_time_for_partition_key(key).timestamp()
    message = f"there is no partition '{key}'"
    raise NoSuchRangeError(bound, message, _nearest(partitions, key))


def _nearest(partitions: TimeWindowPartitionsDefinition, key: str) -> str:
    try:
        wanted = datetime.strptime(key, partitions.fmt).replace(
            tzinfo=ZoneInfo(partitions.timezone)
        )
    except ValueError:
        return f"Write it as {partitions.fmt}, such as {partitions.get_last_partition_key()}."
    first, last = partitions.get_first_partition_key(), partitions.get_last_partition_key()
    if first is None or last is None:
        return "There are none yet."
    if wanted < partitions.start_time_for_partition_key(first):
        return f"The first is {first}."
    if wanted > partitions.start_time_for_partition_key(last):
        return f"The last is {last}."
    window = partitions.get_next_partition_window(wanted)
    assert window is not None, "there is one up to the last"
    return f"The next is {partitions.get_partition_key_for_timestamp(window.start.timestamp())}."
