"""Backfills of floe.yaml: their assets and partition ranges, and their validation."""

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
from floe.orchestration.jobs import assets_of, by_partitions_of, inseparable_assets
from floe.orchestration.loading import AnyPartitions, Loading, Parts
from floe.orchestration.ranges import keys_in_range
from floe.orchestration.selection import name_of
from floe.spec.findings import Finding, KeyPath, SpecError
from floe.spec.nearby import suggest
from floe.spec.orchestration import Backfill

Bound = Literal["start", "end"]
SEPARATOR = "|"
"""Separates the dimensions of a multi-dimensional key."""


class InvalidRangeError(FloeError):
    """A range has an unknown start or end, or ends before it starts."""

    exit_code = 2

    def __init__(self, bound: Bound, message: str, hint: str) -> None:
        self.bound: Bound = bound
        self.message = message
        self.hint = hint
        super().__init__(f"{message[0].upper()}{message[1:]}. {hint}".strip())


@dataclass(frozen=True)
class BackfillScope:
    """The assets and partitions of a backfill."""

    job: str
    partitions: AnyPartitions
    assets: frozenset[AssetKey]
    together: Mapping[AssetKey, frozenset[AssetKey]]
    """For each asset that cannot run alone, all assets of its function."""

    def missing(self, done: frozenset[AssetKey]) -> frozenset[AssetKey]:
        """Return the assets that are left to run if `done` are materialized."""
        lacking = self.assets - done
        return frozenset(asset for key in lacking for asset in self.together.get(key, {key}))


def check_backfills(loading: Loading, parts: Parts) -> Parts:
    """Reject invalid backfills. They are not part of Dagster's definitions."""
    findings: list[Finding] = []
    for name in loading.site.spec.orchestration.backfills:
        try:
            findings += _check(loading, parts, name)
        except SpecError as error:
            findings += error.findings
    if findings:
        raise SpecError(findings)
    return parts


def scope_of(loading: Loading, parts: Parts, name: str) -> BackfillScope:
    """Return the assets and partitions of a backfill."""
    backfill = loading.site.spec.orchestration.backfills[name]
    path = ("orchestration", "backfills", name)
    by_partitions = by_partitions_of(parts, assets_of(loading, parts, backfill.job))
    partitions = _choose_partitions(loading, parts, path, backfill, list(by_partitions))
    assets = frozenset(by_partitions[partitions])
    return BackfillScope(backfill.job, partitions, assets, inseparable_assets(parts))


def keys_of_range(partitions: AnyPartitions, start: str, end: str) -> Sequence[str]:
    """Return the keys of a range in order; both ends must exist.

    For multi-dimensional keys, the time key is enough: it means all keys of the others.
    """
    if not isinstance(partitions, MultiPartitionsDefinition):
        _check_bounds(partitions, start, end)
        return keys_in_range(partitions, start, end)
    first = _split_key(partitions, start, "start")
    last = _split_key(partitions, end, "end")
    for dimension in partitions.partitions_defs:
        name = dimension.name
        _check_bounds(dimension.partitions_def, first[name], last[name])
    return keys_in_range(partitions, MultiPartitionKey(first), MultiPartitionKey(last))


def _choose_partitions(
    loading: Loading,
    parts: Parts,
    path: KeyPath,
    backfill: Backfill,
    candidates: list[AnyPartitions],
) -> AnyPartitions:
    if not candidates:
        message = f"the assets of '{backfill.job}' have no partitions"
        hint = "Declare partitions under orchestration.assets, or name another job."
        raise loading.refusal((*path, "job"), message, hint)
    if backfill.partitions is None:
        if len(candidates) > 1:
            message = f"the assets of '{backfill.job}' have {len(candidates)} partition definitions"
            raise loading.refusal(path, message, "Choose one with partitions.")
        return candidates[0]
    wanted = parts.partitions[backfill.partitions]
    if wanted not in candidates:
        message = f"no asset of '{backfill.job}' has the partitions '{backfill.partitions}'"
        names = [name for name, definition in parts.partitions.items() if definition in candidates]
        hint = f"Its partitions: {', '.join(names)}." if names else "Remove the key."
        raise loading.refusal((*path, "partitions"), message, hint)
    return wanted


def _functions(parts: Parts, keys: frozenset[AssetKey]) -> Iterator[AssetsDefinition]:
    for asset in parts.assets:
        if isinstance(asset, AssetsDefinition) and asset.keys & keys:
            yield asset


def _check(loading: Loading, parts: Parts, name: str) -> Iterator[Finding]:
    scope = scope_of(loading, parts, name)
    backfill = loading.site.spec.orchestration.backfills[name]
    path = ("orchestration", "backfills", name)
    for function in _functions(parts, scope.assets):
        if (problem := _batch_too_large(function, backfill.batch_size)) is not None:
            yield loading.finding((*path, "batch_size"), *problem)
    if _is_dynamic(scope.partitions):
        return  # dynamic keys are in Dagster's database; the run checks them
    wanted = backfill.partition_range
    try:
        keys_of_range(scope.partitions, wanted.start, wanted.end)
    except InvalidRangeError as error:
        yield loading.finding((*path, "partition_range", error.bound), error.message, error.hint)


def _batch_too_large(function: AssetsDefinition, size: int) -> tuple[str, str] | None:
    """Explain why one run cannot take this many partitions; None if it can."""
    name = ", ".join(sorted(map(name_of, function.keys)))
    policy = function.backfill_policy
    if policy is not None:
        most = policy.max_partitions_per_run
        if most is None or size <= most:
            return None
        return f"is {size}, but {name} takes at most {most} in one run", f"Use {most} or less."
    if size == 1 or isinstance(function.node_def, OpDefinition):
        return None
    message = f"is {size}, but {name} is a graph of ops, which handle one partition at a time"
    return message, "Use 1, or set a backfill_policy if its ops can handle ranges."


def _is_dynamic(partitions: AnyPartitions) -> bool:
    if isinstance(partitions, MultiPartitionsDefinition):
        return any(
            _is_dynamic(dimension.partitions_def) for dimension in partitions.partitions_defs
        )
    return isinstance(partitions, DynamicPartitionsDefinition)


def _split_key(partitions: MultiPartitionsDefinition, key: str, bound: Bound) -> dict[str, str]:
    """Split a key by dimension; a time key gets the first or last other keys."""
    names = partitions.partition_dimension_names
    if SEPARATOR in key:
        parts = key.split(SEPARATOR)
        if len(parts) == len(names):
            return dict(zip(names, parts, strict=True))
    elif partitions.has_time_window_dimension:
        time = partitions.time_window_dimension.name
        index = 0 if bound == "start" else -1
        others = {
            dimension.name: dimension.partitions_def.get_partition_keys()
            for dimension in partitions.partitions_defs
            if dimension.name != time
        }
        for name, keys in others.items():
            if not keys:
                raise InvalidRangeError(bound, f"'{name}' has no keys yet", "Add some first.")
        return {**{name: keys[index] for name, keys in others.items()}, time: key}
    shape = SEPARATOR.join(names)
    raise InvalidRangeError(bound, f"'{key}' is not a key of {shape}", f"Write it as {shape}.")


def _check_bounds(partitions: AnyPartitions, start: str, end: str) -> None:
    if isinstance(partitions, TimeWindowPartitionsDefinition):
        positions = [_start_time(partitions, bound, key) for bound, key in _bounds(start, end)]
    else:
        keys = list(partitions.get_partition_keys())
        positions = [_position(keys, bound, key) for bound, key in _bounds(start, end)]
    if positions[1] < positions[0]:
        message = f"the end {end} is before the start {start}"
        raise InvalidRangeError("end", message, "Swap them.")


def _bounds(start: str, end: str) -> Sequence[tuple[Bound, str]]:
    return [("start", start), ("end", end)]


def _position(keys: list[str], bound: Bound, key: str) -> float:
    if key in keys:
        return keys.index(key)
    hint = suggest(key, keys) or "There are no keys yet: add some first."
    raise InvalidRangeError(bound, f"there is no partition '{key}'", hint)


def _start_time(partitions: TimeWindowPartitionsDefinition, bound: Bound, key: str) -> float:
    if partitions.has_partition_key(key):
        return partitions.start_time_for_partition_key(key).timestamp()
    message = f"there is no partition '{key}'"
    raise InvalidRangeError(bound, message, _nearest(partitions, key))


def _nearest(partitions: TimeWindowPartitionsDefinition, key: str) -> str:
    try:
        wanted = datetime.strptime(key, partitions.fmt).replace(
            tzinfo=ZoneInfo(partitions.timezone)
        )
    except ValueError:
        return f"Write it as {partitions.fmt}, such as {partitions.get_last_partition_key()}."
    first, last = partitions.get_first_partition_key(), partitions.get_last_partition_key()
    if first is None or last is None:
        return "No partition exists yet."
    if wanted < partitions.start_time_for_partition_key(first):
        return f"The first is {first}."
    if wanted > partitions.start_time_for_partition_key(last):
        return f"The last is {last}."
    window = partitions.get_next_partition_window(wanted)
    assert window is not None, "the wanted key is before the last"
    return f"The next is {partitions.get_partition_key_for_timestamp(window.start.timestamp())}."
