"""Dynamic partition keys: add, remove, list; find keys that no longer exist."""

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dagster import (
    AddDynamicPartitionsRequest,
    AssetKey,
    DagsterInstance,
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    partition_loading_context,
)

from floe.errors import FloeError
from floe.execution.site import Site
from floe.execution.user_code import FunctionNotLoadedError, load_function
from floe.orchestration.instance import HOME, open_instance
from floe.orchestration.loading import AnyPartitions, Loading, Parts, load
from floe.orchestration.partitions import build_partitions
from floe.orchestration.selection import name_of
from floe.settings import make_private_file
from floe.spec.findings import KeyPath
from floe.spec.nearby import suggest
from floe.spec.partitions import DynamicPartitions, MultiPartitions, Partitions

SECONDS = 30
"""How often a key function is called."""
_SEPARATOR = "|"
"""Separates the dimensions of a multi-dimensional key."""


class UnknownPartitionsError(FloeError):
    """No dynamic partitions of this name are declared."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        otherwise = "Declare them under orchestration.partitions with type: dynamic."
        hint = suggest(name, known, otherwise)
        super().__init__(f"No dynamic partitions named '{name}' are declared. {hint}")


class UnknownKeyError(FloeError):
    """The key to remove does not exist."""

    def __init__(self, name: str, key: str, known: Iterable[str]) -> None:
        hint = suggest(key, known, f"List them with: floe partitions list {name}")
        super().__init__(f"'{key}' is not a key of '{name}'. {hint}")


class InvalidKeyError(FloeError):
    """The value is not a valid partition key."""

    def __init__(self, name: str, key: object) -> None:
        super().__init__(
            f"{key!r} is not a valid key of '{name}'. Use non-empty text without "
            f"'{_SEPARATOR}' and without surrounding spaces."
        )


def add_partitions(name: str, keys: Iterable[str], project: Path | None = None) -> list[str]:
    """Add keys to dynamic partitions of a project; return the new ones."""
    site = load(project).site
    wanted = _validate(site, name, keys)
    with open_instance(site) as instance:
        existing = set(instance.get_dynamic_partitions(name))
        new = [key for key in wanted if key not in existing]
        instance.add_dynamic_partitions(name, new)
    return new


def remove_partitions(name: str, keys: Iterable[str], project: Path | None = None) -> None:
    """Remove keys from dynamic partitions. Their versions are kept."""
    site = load(project).site
    wanted = _validate(site, name, keys)
    with open_instance(site) as instance:
        existing = instance.get_dynamic_partitions(name)
        for key in wanted:
            if key not in existing:
                raise UnknownKeyError(name, key, existing)
        for key in wanted:
            instance.delete_dynamic_partition(name, key)


def declared_dynamic(partitions: Mapping[str, Partitions]) -> dict[str, DynamicPartitions]:
    """Return dynamic partitions by their names in Dagster, including dimensions."""
    return {name: definition for name, _, definition in _dynamic(partitions)}


def _dynamic(
    partitions: Mapping[str, Partitions],
) -> Iterator[tuple[str, KeyPath, DynamicPartitions]]:
    section = ("orchestration", "partitions")
    for name, definition in partitions.items():
        if isinstance(definition, DynamicPartitions):
            yield name, (*section, name), definition
        elif isinstance(definition, MultiPartitions):
            for dimension, inner in definition.partitions.items():
                if isinstance(inner, DynamicPartitions):
                    path = (*section, name, "partitions", dimension)
                    yield f"{name}/{dimension}", path, inner


def _validate(site: Site, name: str, keys: Iterable[str]) -> list[str]:
    known = declared_dynamic(site.spec.orchestration.partitions)
    if name not in known:
        raise UnknownPartitionsError(name, known)
    return _validate_keys(name, keys)


def _validate_keys(name: str, keys: Iterable[object]) -> list[str]:
    checked: dict[str, None] = {}
    for key in keys:
        if not isinstance(key, str) or not key.strip() or key != key.strip() or _SEPARATOR in key:
            raise InvalidKeyError(name, key)
        checked[key] = None
    return list(checked)


def build_dynamic_partitions(loading: Loading, parts: Parts) -> Parts:
    """Add a sensor for each key function; it adds new keys."""
    sensors = []
    for name, path, partitions in _dynamic(loading.site.spec.orchestration.partitions):
        if partitions.fn is None:
            continue
        try:
            load_function(loading.site, partitions.fn)
        except FunctionNotLoadedError as error:
            raise loading.refusal((*path, "fn"), str(error).rstrip(".")) from error
        sensors.append(_sensor(KeySource(loading.site, name, partitions.fn)))
    return replace(parts, sensors=(*parts.sensors, *sensors))


@dataclass(frozen=True)
class KeySource:
    """A function of the project that returns the keys of dynamic partitions."""

    site: Site
    name: str
    function: str

    def add_new_keys(self, context: SensorEvaluationContext) -> SensorResult | SkipReason:
        """Add new keys; keep keys that the function no longer returns.

        They may have versions; `floe partitions remove` removes them.
        """
        known = _validate_keys(self.name, load_function(self.site, self.function)())
        existing = set(context.instance.get_dynamic_partitions(self.name))
        new = [key for key in known if key not in existing]
        if not new:
            return SkipReason(f"{self.function} returned no new keys.")
        return SensorResult(
            dynamic_partitions_requests=[AddDynamicPartitionsRequest(self.name, new)]
        )


def _sensor(source: KeySource) -> SensorDefinition:
    return SensorDefinition(
        name=f"floe_partitions_{source.name.replace('/', '__')}",
        evaluation_fn=source.add_new_keys,
        minimum_interval_seconds=SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Adds the keys that {source.function} returns to '{source.name}'.",
    )


@dataclass(frozen=True)
class PartitionKeys:
    """Partitions of a project, with their current keys."""

    name: str
    kind: str
    keys: tuple[str, ...]


def list_partitions(project: Path | None = None) -> list[PartitionKeys]:
    """Return the declared partitions of a project, each with its keys."""
    loading = load(project)
    declared = loading.site.spec.orchestration.partitions
    definitions = build_partitions(loading, Parts()).partitions
    with (
        open_instance(loading.site) as instance,
        partition_loading_context(dynamic_partitions_store=instance),
    ):
        return [
            PartitionKeys(name, partitions.type, tuple(definitions[name].get_partition_keys()))
            for name, partitions in sorted(declared.items())
        ]


_LOG = logging.getLogger("floe")
_EXAMPLES = 3


def partition_drift(instance: DagsterInstance, parts: Parts) -> list[str]:
    """Describe materialized partitions that no longer exist, by asset."""
    known = set(instance.all_asset_keys())
    with partition_loading_context(dynamic_partitions_store=instance):
        return list(_sentences(instance, parts, known))


def _sentences(instance: DagsterInstance, parts: Parts, known: set[AssetKey]) -> Iterator[str]:
    keys_of: dict[AnyPartitions, set[str]] = {}
    for key in sorted(known & parts.specs.keys()):
        materialized = instance.get_materialized_partitions(key)
        partitions = parts.specs[key].partitions_def
        if partitions is not None and partitions not in keys_of:
            keys_of[partitions] = set(partitions.get_partition_keys())
        gone = sorted(
            set(materialized) - (keys_of[partitions] if partitions is not None else set())
        )
        if gone:
            change = (
                "is no longer partitioned" if partitions is None else "has other partitions now"
            )
            examples = ", ".join(gone[:_EXAMPLES]) + (", …" if len(gone) > _EXAMPLES else "")
            yield (
                f"'{name_of(key)}' {change}: {len(gone):,} of {len(materialized):,} materialized "
                f"partitions no longer exist ({examples}). Their versions are kept, but runs "
                "cannot update them."
            )


def report_drift(loading: Loading, parts: Parts) -> Parts:
    """Log drift before anything runs, if Dagster's instance is available.

    Every run loads the project, so a check without drift is recorded and repeated only after a
    definition has changed.
    """
    home = os.environ.get(HOME)
    if home is None or not Path(home).is_dir():
        return parts
    stamp = loading.site.state_dir / "partitions.sha256"
    now = fingerprint(parts)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == now:
        return parts
    with DagsterInstance.get() as instance:
        drift = partition_drift(instance, parts)
    for sentence in drift:
        _LOG.warning(sentence)
    if not drift:
        # On a read-only disk the check is repeated every time.
        with suppress(OSError):
            make_private_file(stamp)
            stamp.write_text(now, encoding="utf-8")
    return parts


def fingerprint(parts: Parts) -> str:
    """Return a hash of the partition definitions of all assets, without dynamic keys."""
    lines = sorted(f"{name_of(key)} {spec.partitions_def!r}" for key, spec in parts.specs.items())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
