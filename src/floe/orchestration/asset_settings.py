"""Apply the patterns under `orchestration.assets` to Python assets, dbt models and processes.

A pattern is matched against the dotted name of an asset; slashes count as dots. For each setting,
the most specific matching pattern wins: the one with more literal characters, then the one with
fewer `*`. Two equally specific patterns must agree. The `partitions` of a dataset apply to the
asset of the same name and rank like a pattern without wildcards.
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
    AssetSelection,
    AssetSpec,
    AutomationCondition,
    AutomationConditionSensorDefinition,
    BackfillPolicy,
    DefaultSensorStatus,
)

from floe.orchestration.loading import AnyPartitions, Loading, Parts
from floe.orchestration.selection import name_of
from floe.spec.findings import Finding, KeyPath, SpecError
from floe.spec.nearby import suggest
from floe.spec.orchestration import AssetConfig

PARTITIONS, AUTOMATION, BACKFILL = "partitions", "automation_condition", "backfill_policy"
GROUP, KIND = "group_name", "compute_kind"
_SET = re.compile(r"\[!?\]?[^\]]*\]")
_NO_GROUP = (None, "default")
"""Dagster's values for an asset without a group."""
MAX_NAMES = 5
"""How many names a message lists."""


@dataclass(frozen=True)
class Setting:
    """The value of one setting in a pattern, as Dagster needs it."""

    pattern: str
    name: str
    value: Any
    section: KeyPath = ("orchestration", "assets")

    @property
    def path(self) -> KeyPath:
        return (*self.section, self.pattern, self.name)


Settings = Mapping[str, Setting]


def apply_settings(loading: Loading, parts: Parts) -> Parts:
    """Apply the settings of matching patterns to every asset."""
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
    functions = [asset for asset in parts.assets if isinstance(asset, AssetsDefinition)]
    for asset in functions:
        findings += _check_function(loading, parts, asset, chosen)
    if findings:
        raise SpecError(findings)
    return replace(parts, assets=tuple(_apply(asset, chosen) for asset in parts.assets))


def specificity(pattern: str) -> tuple[int, int]:
    """Return how specific a pattern is: more literal characters, then fewer `*`."""
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
    matched = {}
    for pattern in patterns:
        match = re.compile(translate(pattern.replace("/", "."))).match
        matched[pattern] = [key for name, key in names if match(name)]
    return matched


def _by_asset(
    parts: Parts, declared: Mapping[str, Settings], matching: Mapping[str, list[AssetKey]]
) -> dict[AssetKey, dict[str, list[Setting]]]:
    """Return the settings of each asset by name, the most specific first."""
    by_asset: dict[AssetKey, dict[str, list[Setting]]] = {}
    for pattern, settings in declared.items():
        for key in matching[pattern]:
            for name, setting in settings.items():
                # External assets cannot be automated. A pattern that matches only those is rejected
                # elsewhere.
                if name != AUTOMATION or key in parts.executable:
                    by_asset.setdefault(key, {}).setdefault(name, []).append(setting)
    return by_asset


def _add_datasets(
    loading: Loading, parts: Parts, by_asset: dict[AssetKey, dict[str, list[Setting]]]
) -> None:
    """Add the partitions of datasets to the assets of the same name."""
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
            listed = ", ".join(map(name_of, keys[:MAX_NAMES]))
            message = f"no asset or process of this project produces {listed}"
            hint = "Only assets that this project produces can be automated."
            yield loading.finding((*path, AUTOMATION), message, hint)


def _check_ties(
    loading: Loading, key: AssetKey, settings: Mapping[str, list[Setting]]
) -> Iterator[Finding]:
    """Find equally specific patterns with different values."""
    for name, (best, *others) in settings.items():
        rank = specificity(best.pattern)
        for other in takewhile(lambda setting: specificity(setting.pattern) == rank, others):  # noqa: B023
            if other.value != best.value:
                message = (
                    f"'{best.pattern}' sets a different {name} for '{name_of(key)}', "
                    "and neither pattern is more specific"
                )
                hint = f"Set it under '{name_of(key)}'."
                yield loading.finding(other.path, message, hint)


def _check_declaration(
    loading: Loading, parts: Parts, key: AssetKey, given: Settings
) -> Iterator[Finding]:
    """Find settings that contradict the asset's own declaration."""
    spec, file = parts.specs[key], parts.origins.get(key)
    own: dict[str, Any] = {PARTITIONS: spec.partitions_def, AUTOMATION: spec.automation_condition}
    # floe infers groups and kinds of models and processes; in Python code they are explicit.
    if file is not None:
        own[GROUP] = None if spec.group_name in _NO_GROUP else spec.group_name
        own[KIND] = next(iter(spec.kinds), None) if _other_kind(spec, given) else None
    for name, value in own.items():
        if name in given and value is not None and value != given[name].value:
            yield _contradiction(loading, key, given[name], file)


def _other_kind(spec: AssetSpec, given: Settings) -> bool:
    return KIND in given and given[KIND].value not in spec.kinds


def _contradiction(loading: Loading, key: AssetKey, setting: Setting, file: str | None) -> Finding:
    message = f"'{name_of(key)}' has a different {setting.name} in {file or 'its own declaration'}"
    hint = "Remove it there, or leave the asset out of the pattern."
    return loading.finding(setting.path, message, hint)


def _check_function(
    loading: Loading, parts: Parts, function: AssetsDefinition, chosen: Mapping[AssetKey, Settings]
) -> Iterator[Finding]:
    """Find settings that the assets of one function cannot have."""
    given = {key: chosen[key] for key in function.keys if key in chosen}
    for setting in _differing(parts, function, given):
        names = sorted(map(name_of, function.keys))
        together = ", ".join(names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")
        message = f"one function computes {together}, which would then differ in {setting.name}"
        yield loading.finding(setting.path, message, "Use a pattern that matches all of them.")
    for key, settings in given.items():
        declared = function.backfill_policy
        if BACKFILL in settings and declared not in (None, settings[BACKFILL].value):
            yield _contradiction(loading, key, settings[BACKFILL], parts.origins.get(key))


def _differing(
    parts: Parts, function: AssetsDefinition, given: Mapping[AssetKey, Settings]
) -> Iterator[Setting]:
    """Yield the settings in which the assets of one function would differ."""
    if len(function.keys) == 1 or not given:
        return
    partitions = {_partitions_of(parts.specs[key], given.get(key, {})) for key in function.keys}
    # Assets that can be computed separately may have different partitions: no run has both.
    if len(partitions) > 1 and not function.can_subset:
        yield from (settings[PARTITIONS] for settings in given.values() if PARTITIONS in settings)
    policies = [settings[BACKFILL] for settings in given.values() if BACKFILL in settings]
    if len({settings.value for settings in policies}) > 1:
        yield from policies


def _partitions_of(spec: AssetSpec, given: Settings) -> AnyPartitions | None:
    return given[PARTITIONS].value if PARTITIONS in given else spec.partitions_def


def _apply(
    asset: AssetsDefinition | AssetSpec, chosen: Mapping[AssetKey, Settings]
) -> AssetsDefinition | AssetSpec:
    if isinstance(asset, AssetSpec):
        return _with(asset, chosen.get(asset.key, {}))
    given = [chosen[key] for key in asset.keys if key in chosen]
    if not given:
        return asset
    updated = asset.map_asset_specs(lambda spec: _with(spec, chosen.get(spec.key, {})))
    policy = next((settings[BACKFILL].value for settings in given if BACKFILL in settings), None)
    return (
        updated.with_attributes(backfill_policy=policy)
        if policy and asset.is_executable
        else updated
    )


def _with(spec: AssetSpec, given: Settings) -> AssetSpec:
    """Return an asset with its settings."""
    attributes = {PARTITIONS: "partitions_def", AUTOMATION: AUTOMATION, GROUP: GROUP}
    changed = {
        attributes[name]: setting.value for name, setting in given.items() if name in attributes
    }
    if _other_kind(spec, given):
        changed["kinds"] = {given[KIND].value}
    return spec.replace_attributes(**changed) if changed else spec


Condition = AutomationCondition[Any]
SENSOR = "floe_automation"
SECONDS = 5
"""How often conditions are evaluated: as often as Dagster's daemon runs sensors."""


def condition_of(config: AssetConfig, zone: str) -> Condition | None:
    """Return the automation condition of a pattern in floe.yaml."""
    match config.automation_condition:
        case "eager":
            return AutomationCondition.eager()
        case "on_cron":
            assert config.cron_schedule is not None, "floe.yaml was validated"
            return AutomationCondition.on_cron(config.cron_schedule, config.timezone or zone)
        case "on_missing":
            return _on_missing()
        case None:
            return None


def _on_missing() -> Condition:
    """Request every missing partition once its inputs exist.

    Dagster's own `on_missing` considers only the newest window, and only partitions that became
    missing after the condition was set, so it fills no gaps. A failed partition is not requested
    again, because it would fail in a loop.
    """
    return (
        AutomationCondition.missing()
        & ~AutomationCondition.in_progress()
        & ~AutomationCondition.execution_failed()
        & ~AutomationCondition.any_deps_missing()
        & ~AutomationCondition.any_deps_in_progress()
    ).with_label("on_missing")


def build_automation(_: Loading, parts: Parts) -> Parts:
    """Add the sensor that evaluates the conditions; it runs unless somebody stops it.

    Otherwise Dagster adds its own, which is stopped until somebody starts it.
    """
    automated = any(spec.automation_condition is not None for spec in parts.specs.values())
    own = any(isinstance(sensor, AutomationConditionSensorDefinition) for sensor in parts.sensors)
    if not automated or own:
        return parts
    sensor = AutomationConditionSensorDefinition(
        name=SENSOR,
        target=AssetSelection.all(),
        default_status=DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=SECONDS,
        description="Materializes assets when their automation_condition is met.",
    )
    return replace(parts, sensors=(*parts.sensors, sensor))
