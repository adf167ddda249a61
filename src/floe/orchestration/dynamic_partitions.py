"""Partitions whose keys come while the platform runs: by a function, by a command, by code."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dagster import (
    AddDynamicPartitionsRequest,
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)

from floe.errors import FloeError
from floe.execution.functions import FunctionNotLoadedError, load_function
from floe.execution.site import Site
from floe.orchestration.instances import open_instance
from floe.orchestration.loading import Loading, load
from floe.orchestration.parts import Parts
from floe.spec.findings import KeyPath
from floe.spec.nearby import suggest
from floe.spec.orchestration import DynamicPartitions, MultiPartitions, Partitions

SECONDS = 30
"""How often a function is asked for its keys."""
_SEPARATOR = "|"
"""Stands between the parts of a key with several dimensions."""


class UnknownPartitionsError(FloeError):
    """Partitions were named that are not declared as dynamic."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        otherwise = "Declare them under orchestration.partitions with type: dynamic."
        hint = suggest(name, known, otherwise)
        super().__init__(f"No dynamic partitions named '{name}' are declared. {hint}")


class UnknownKeyError(FloeError):
    """A key was to be removed that is not there."""

    def __init__(self, name: str, key: str, known: Iterable[str]) -> None:
        hint = suggest(key, known, f"List them with: floe partitions list {name}")
        super().__init__(f"'{key}' is no key of '{name}'. {hint}")


class WrongKeyError(FloeError):
    """Something was given as a key of partitions that cannot be one."""

    def __init__(self, name: str, key: object) -> None:
        super().__init__(
            f"{key!r} cannot be a key of '{name}'. Use text that is not empty, without "
            f"'{_SEPARATOR}' and without spaces around it."
        )


def add_partitions(name: str, keys: Iterable[str], project: Path | None = None) -> list[str]:
    """Add keys to dynamic partitions of a project; return those that were not there before."""
    site = load(project).site
    wanted = _checked(site, name, keys)
    with open_instance(site) as instance:
        there = set(instance.get_dynamic_partitions(name))
        new = [key for key in wanted if key not in there]
        instance.add_dynamic_partitions(name, new)
    return new


def remove_partitions(name: str, keys: Iterable[str], project: Path | None = None) -> None:
    """Remove keys from dynamic partitions; what was made for them stays where it is."""
    site = load(project).site
    wanted = _checked(site, name, keys)
    with open_instance(site) as instance:
        there = instance.get_dynamic_partitions(name)
        for key in wanted:
            if key not in there:
                raise UnknownKeyError(name, key, there)
        for key in wanted:
            instance.delete_dynamic_partition(name, key)


def declared_dynamic(partitions: Mapping[str, Partitions]) -> dict[str, DynamicPartitions]:
    """Return dynamic partitions by the name that Dagster has for them, dimensions too."""
    return {name: one for name, _, one in _dynamic(partitions)}


def _dynamic(
    partitions: Mapping[str, Partitions],
) -> Iterator[tuple[str, KeyPath, DynamicPartitions]]:
    section = ("orchestration", "partitions")
    for name, one in partitions.items():
        if isinstance(one, DynamicPartitions):
            yield name, (*section, name), one
        elif isinstance(one, MultiPartitions):
            for dimension, inner in one.partitions.items():
                if isinstance(inner, DynamicPartitions):
                    path = (*section, name, "partitions", dimension)
                    yield f"{name}/{dimension}", path, inner


def _checked(site: Site, name: str, keys: Iterable[str]) -> list[str]:
    known = declared_dynamic(site.spec.orchestration.partitions)
    if name not in known:
        raise UnknownPartitionsError(name, known)
    return _checked_keys(name, keys)


def _checked_keys(name: str, keys: Iterable[object]) -> list[str]:
    checked: dict[str, None] = {}
    for key in keys:
        if not isinstance(key, str) or not key.strip() or key != key.strip() or _SEPARATOR in key:
            raise WrongKeyError(name, key)
        checked[key] = None
    return list(checked)


def build_dynamic_partitions(loading: Loading, parts: Parts) -> Parts:
    """Add a sensor for each function that knows keys; it adds those that are new."""
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
    """A function of the project that knows the keys of dynamic partitions."""

    site: Site
    name: str
    function: str

    def look(self, context: SensorEvaluationContext) -> SensorResult | SkipReason:
        """Add the keys that are new. Those that the function no longer knows stay.

        Something may have been made for them; who wants them gone removes them by command.
        """
        known = _checked_keys(self.name, load_function(self.site, self.function)())
        there = set(context.instance.get_dynamic_partitions(self.name))
        new = [key for key in known if key not in there]
        if not new:
            return SkipReason(f"{self.function} knows no new key.")
        return SensorResult(
            dynamic_partitions_requests=[AddDynamicPartitionsRequest(self.name, new)]
        )


def _sensor(source: KeySource) -> SensorDefinition:
    return SensorDefinition(
        name=f"floe_partitions_{source.name.replace('/', '__')}",
        evaluation_fn=source.look,
        minimum_interval_seconds=SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Adds the keys that {source.function} returns to '{source.name}'.",
    )
