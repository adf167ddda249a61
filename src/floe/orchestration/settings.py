"""Apply the patterns under `orchestration.assets` to Python assets, dbt models and processes.

A pattern is compared with the dotted name of an asset; slashes stand for dots. For each setting
of each asset the most specific pattern that gives it wins: the one that spells out more characters
of the name, and of two that spell out equally many, the one with fewer `*`. Two that are equally
specific must agree. The `partitions` of a dataset apply to the asset of its name; they rank like a
pattern that spells out the whole name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import translate
from itertools import takewhile
from typing import Any

from dagster import (
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    BackfillPolicy,
)

from floe.orchestration.automation import condition_of
from floe.orchestration.loading import Loading
from floe.orchestration.parts import AnyPartitions, Parts
from floe.orchestration.selection import name_of
from floe.spec.findings import Finding, KeyPath, SpecError
from floe.spec.nearby import suggest
from floe.spec.orchestration import AssetConfig

PARTITIONS, AUTOMATION, BACKFILL = "partitions", "automation_condition", "backfill_policy"
GROUP, KIND = "group_name", "compute_kind"
_SET = re.compile(r"\[!?\]?[^\]]*\]")
_NO_GROUP = (None, "default")
"""What Dagster has where nobody named a group."""
MOST = 5
"""How many names are listed."""


@dataclass(frozen=True)
class Setting:
    """What a pattern says of one thing, as Dagster understands it."""

    pattern: str
    name: str
    value: Any
    section: KeyPath = ("orchestration", "assets")

    @property
    def path(self) -> KeyPath:
        return (*self.section, self.pattern, self.name)


Settings = Mapping[str, Setting]


def apply_settings(loading: Loading, parts: Parts) -> Parts:
    """Give every asset what the patterns that match it say."""
    declared = _declared(loading, parts)
    matching = _match(parts, declared)
    findings = list(_check_patterns(loading, parts, matching))
    chosen: dict[AssetKey, Settings] = {}
    by_asset = _by_asset(parts, declared, matching)
    _add_datasets(loading, parts, by_asset)
    for key, settings in by_asset.items():
        findings += _check_ties(loading, key, settings)
        chosen[key] = {name: given[0] for name, given in settings.items()}
        findings += _check_declaration(loading, parts, key, chosen[key])
    functions = [one for one in parts.assets if isinstance(one, AssetsDefinition)]
    for one in functions:
        findings += _check_function(loading, parts, one, chosen)
    if findings:
        raise SpecError(findings)
    return replace(parts, assets=tuple(_apply(one, chosen) for one in parts.assets))


def specificity(pattern: str) -> tuple[int, int]:
    """Return how specific a pattern is: how many characters it spells out, then how few `*`."""
    rest = _SET.sub("", pattern)
    wild = rest.count("*") + rest.count("?")
    return len(rest) - wild, -rest.count("*")


def _declared(loading: Loading, parts: Parts) -> dict[str, Settings]:
    """Return the settings of each pattern, the most specific pattern first."""
    patterns = loading.site.spec.orchestration.assets
    zone = loading.site.spec.timezone
    return {
        pattern: {
            name: Setting(pattern, name, value)
            for name, value in _values(parts, patterns[pattern], zone).items()
            if value is not None
        }
        for pattern in sorted(patterns, key=specificity, reverse=True)
    }


def _values(parts: Parts, config: AssetConfig, zone: str) -> dict[str, Any]:
    return {
        PARTITIONS: config.partitions and parts.partitions[config.partitions],
        AUTOMATION: condition_of(config, zone),
        BACKFILL: _policy(config),
        GROUP: config.group_name,
        KIND: config.compute_kind,
    }


def _policy(config: AssetConfig) -> BackfillPolicy | None:
    if config.backfill_policy is None:
        return None
    most = config.backfill_policy.max_partitions_per_run
    return BackfillPolicy.single_run() if most is None else BackfillPolicy.multi_run(most)


def _match(parts: Parts, patterns: Iterable[str]) -> dict[str, list[AssetKey]]:
    """Return the assets that each pattern matches."""
    names = [(name_of(key), key) for key in parts.specs]
    found = {}
    for pattern in patterns:
        matches = re.compile(translate(pattern.replace("/", "."))).match
        found[pattern] = [key for name, key in names if matches(name)]
    return found


def _by_asset(
    parts: Parts, declared: Mapping[str, Settings], matching: Mapping[str, list[AssetKey]]
) -> dict[AssetKey, dict[str, list[Setting]]]:
    """Return what patterns say of each asset, thing by thing, the most specific first."""
    found: dict[AssetKey, dict[str, list[Setting]]] = {}
    for pattern, settings in declared.items():
        for key in matching[pattern]:
            for name, setting in settings.items():
                # What others make is not made by itself here; such a pattern alone is refused.
                if name != AUTOMATION or key in parts.executable:
                    found.setdefault(key, {}).setdefault(name, []).append(setting)
    return found


def _add_datasets(
    loading: Loading, parts: Parts, by_asset: dict[AssetKey, dict[str, list[Setting]]]
) -> None:
    """Add the partitions that datasets declare, each to the asset that has the dataset's name."""
    datasets = loading.site.spec.datasets
    for key in parts.specs:
        dataset = datasets.get(name_of(key))
        if dataset is not None and dataset.partitions is not None:
            value = parts.partitions[dataset.partitions]
            setting = Setting(name_of(key), PARTITIONS, value, section=("datasets",))
            by_asset.setdefault(key, {}).setdefault(PARTITIONS, []).insert(0, setting)


def _check_patterns(
    loading: Loading, parts: Parts, matching: Mapping[str, list[AssetKey]]
) -> Iterator[Finding]:
    names = [name_of(key) for key in parts.specs]
    for pattern, keys in matching.items():
        path = ("orchestration", "assets", pattern)
        config = loading.site.spec.orchestration.assets[pattern]
        if not keys:
            otherwise = "" if names else "The project has no assets yet."
            hint = suggest(pattern.replace("/", "."), names, otherwise)
            yield loading.finding(path, "matches no asset", hint, at_key=True)
        elif config.automation_condition is not None and parts.executable.isdisjoint(keys):
            message = f"nothing in this project makes {', '.join(map(name_of, keys[:MOST]))}"
            hint = "Only what is made here can be made by itself."
            yield loading.finding((*path, AUTOMATION), message, hint)


def _check_ties(
    loading: Loading, key: AssetKey, settings: Mapping[str, list[Setting]]
) -> Iterator[Finding]:
    """Find patterns that are equally specific and say different things."""
    for name, (best, *others) in settings.items():
        rank = specificity(best.pattern)
        for other in takewhile(lambda one: specificity(one.pattern) == rank, others):  # noqa: B023
            if other.value != best.value:
                message = (
                    f"'{best.pattern}' gives '{name_of(key)}' another {name}, "
                    "and neither pattern is more specific"
                )
                hint = f"Write what holds for it under '{name_of(key)}'."
                yield loading.finding(other.path, message, hint)


def _check_declaration(
    loading: Loading, parts: Parts, key: AssetKey, given: Settings
) -> Iterator[Finding]:
    """Find settings that contradict what the asset says of itself."""
    spec, file = parts.specs[key], parts.origins.get(key)
    said: dict[str, Any] = {PARTITIONS: spec.partitions_def, AUTOMATION: spec.automation_condition}
    # Groups and kinds of models and processes are floe's own guess; in code somebody meant them.
    if file is not None:
        said[GROUP] = None if spec.group_name in _NO_GROUP else spec.group_name
        said[KIND] = next(iter(spec.kinds), None) if _other_kind(spec, given) else None
    for name, value in said.items():
        if name in given and value is not None and value != given[name].value:
            yield _contradiction(loading, key, given[name], file)


def _other_kind(spec: AssetSpec, given: Settings) -> bool:
    return KIND in given and given[KIND].value not in spec.kinds


def _contradiction(loading: Loading, key: AssetKey, setting: Setting, file: str | None) -> Finding:
    message = f"'{name_of(key)}' has another {setting.name} in {file or 'its own declaration'}"
    hint = "Remove it there, or leave the asset out of the pattern."
    return loading.finding(setting.path, message, hint)


def _check_function(
    loading: Loading, parts: Parts, function: AssetsDefinition, chosen: Mapping[AssetKey, Settings]
) -> Iterator[Finding]:
    """Find settings that assets cannot have that one function makes together."""
    given = {key: chosen[key] for key in function.keys if key in chosen}
    for one in _differing(parts, function, given):
        names = sorted(map(name_of, function.keys))
        together = ", ".join(names[:MOST]) + (", …" if len(names) > MOST else "")
        message = f"one function makes {together}, which would then differ in {one.name}"
        yield loading.finding(one.path, message, "Use a pattern that matches all of them.")
    for key, settings in given.items():
        declared = function.backfill_policy
        if BACKFILL in settings and declared not in (None, settings[BACKFILL].value):
            yield _contradiction(loading, key, settings[BACKFILL], parts.origins.get(key))


def _differing(
    parts: Parts, function: AssetsDefinition, given: Mapping[AssetKey, Settings]
) -> Iterator[Setting]:
    """Yield the settings in which assets that one function makes would differ."""
    if len(function.keys) == 1 or not given:
        return
    partitions = {_partitions_of(parts.specs[key], given.get(key, {})) for key in function.keys}
    # Models that can be made one by one may have different partitions: no run makes both.
    if len(partitions) > 1 and not function.can_subset:
        yield from (one[PARTITIONS] for one in given.values() if PARTITIONS in one)
    policies = [one[BACKFILL] for one in given.values() if BACKFILL in one]
    if len({one.value for one in policies}) > 1:
        yield from policies


def _partitions_of(spec: AssetSpec, given: Settings) -> AnyPartitions | None:
    return given[PARTITIONS].value if PARTITIONS in given else spec.partitions_def


def _apply(
    one: AssetsDefinition | AssetSpec, chosen: Mapping[AssetKey, Settings]
) -> AssetsDefinition | AssetSpec:
    if isinstance(one, AssetSpec):
        return _with(one, chosen.get(one.key, {}))
    given = [chosen[key] for key in one.keys if key in chosen]
    if not given:
        return one
    made = one.map_asset_specs(lambda spec: _with(spec, chosen.get(spec.key, {})))
    policy = next((settings[BACKFILL].value for settings in given if BACKFILL in settings), None)
    return made.with_attributes(backfill_policy=policy) if policy and one.is_executable else made


def _with(spec: AssetSpec, given: Settings) -> AssetSpec:
    """Return an asset with its settings."""
    attributes = {PARTITIONS: "partitions_def", AUTOMATION: AUTOMATION, GROUP: GROUP}
    changed = {attributes[name]: one.value for name, one in given.items() if name in attributes}
    if _other_kind(spec, given):
        changed["kinds"] = {given[KIND].value}
    return spec.replace_attributes(**changed) if changed else spec
