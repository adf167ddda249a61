"""Load the Python assets of a project, and check all assets."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from dagster import (
    AssetChecksDefinition,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    JobDefinition,
    ScheduleDefinition,
    SensorDefinition,
    SourceAsset,
    define_asset_job,
)

from floe.errors import FloeError
from floe.execution.user_code import ModuleNotLoadedError, load_package
from floe.orchestration.loading import Loading, Parts
from floe.orchestration.selection import name_of
from floe.spec.document import display_path
from floe.spec.findings import Finding, KeyPath, SpecError
from floe.spec.rules.draft import find_cycles

Asset = AssetsDefinition | AssetSpec
# The class of asset jobs is not public in Dagster.
_JOBS: tuple[type, ...] = (JobDefinition, type(define_asset_job("any")))
_STARTERS = (ScheduleDefinition, SensorDefinition)
_COLLECTED = (AssetsDefinition, AssetSpec, SourceAsset, *_JOBS, *_STARTERS)


@dataclass(frozen=True)
class ModuleObject:
    """A Dagster object in a module of the project."""

    value: Any
    file: str
    path: KeyPath
    """The key of floe.yaml that names the module."""


def build_assets(loading: Loading, parts: Parts) -> Parts:
    """Load the assets, checks, jobs, schedules and sensors of the project's modules."""
    objects, findings = _load_objects(loading)
    findings += _find_source_assets(loading, objects)
    findings += _find_name_clashes(loading, objects)
    assets = _assets_of(objects)
    findings += _find_duplicates(loading, assets)
    if findings:
        raise SpecError(findings)
    return replace(
        parts,
        assets=(*parts.assets, *(asset.value for asset in assets)),
        checks=(*parts.checks, *_of_type(objects, AssetChecksDefinition)),
        origins={
            **parts.origins,
            **{key: asset.file for asset in assets for key in _keys(asset.value)},
        },
        jobs={**parts.jobs, **{job.name: job for job in _of_type(objects, _JOBS)}},
        schedules=(*parts.schedules, *_of_type(objects, ScheduleDefinition)),
        sensors=(*parts.sensors, *_of_type(objects, SensorDefinition)),
    )


def _load_objects(loading: Loading) -> tuple[list[ModuleObject], list[Finding]]:
    """Import every module; a broken one does not hide the errors of the next."""
    objects: dict[int, ModuleObject] = {}
    findings: list[Finding] = []
    for index, reference in enumerate(loading.site.spec.orchestration.asset_modules):
        path = ("orchestration", "asset_modules", index)
        try:
            modules = _import(loading, path, reference)
        except SpecError as error:
            findings += error.findings
            continue
        for module in modules:
            file = display_path(loading.site.root, Path(module.__file__ or module.__name__))
            for value in _objects(module):
                # A module may import assets from another; keep the first occurrence.
                objects.setdefault(id(value), ModuleObject(value, file, path))
    return list(objects.values()), findings


def _import(loading: Loading, path: KeyPath, reference: str) -> list[ModuleType]:
    module = reference.lstrip(".")
    dots = len(reference) - len(module)
    if dots > 1:
        message = f"'{reference}' is outside the project folder"
        raise loading.refusal(
            path, message, "Use one leading dot: it means the folder of floe.yaml."
        )
    if dots and not _is_ours(loading.site.root, module):
        message = f"there is no module '{module}' in the project's folder"
        raise loading.refusal(path, message, "If it is installed, write it without the dot.")
    try:
        return load_package(loading.site, module)
    except ModuleNotLoadedError as error:
        message = f"'{module}' cannot be imported: {error.reason.rstrip('.')}"
        raise loading.refusal(path, message, error.hint) from error


def _is_ours(root: Path, module: str) -> bool:
    path = root.joinpath(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def _objects(module: ModuleType) -> Iterator[Any]:
    for value in list(vars(module).values()):
        # Some Dagster objects are tuples too, and iterating over some of those raises an error.
        if isinstance(value, _COLLECTED):
            yield value
        elif type(value) in (list, tuple):
            yield from (item for item in value if isinstance(item, _COLLECTED))


def _of_type(objects: Iterable[ModuleObject], kind: type | tuple[type, ...]) -> list[Any]:
    return [loaded.value for loaded in objects if isinstance(loaded.value, kind)]


def _assets_of(objects: Iterable[ModuleObject]) -> list[ModuleObject]:
    """Return the assets, without specs that belong to a function of the project."""
    kept = [loaded for loaded in objects if isinstance(loaded.value, AssetsDefinition | AssetSpec)]
    kept = [loaded for loaded in kept if not isinstance(loaded.value, AssetChecksDefinition)]
    functions = [loaded.value for loaded in kept if isinstance(loaded.value, AssetsDefinition)]
    made_keys = {key for loaded in functions for key in loaded.keys}
    return [
        loaded
        for loaded in kept
        if not (isinstance(loaded.value, AssetSpec) and loaded.value.key in made_keys)
    ]


def _keys(asset: Asset) -> Iterable[AssetKey]:
    return [asset.key] if isinstance(asset, AssetSpec) else asset.keys


def _find_source_assets(loading: Loading, objects: Iterable[ModuleObject]) -> Iterator[Finding]:
    for loaded in objects:
        if isinstance(loaded.value, SourceAsset):
            key = loaded.value.key
            message = f"'{'.'.join(key.path)}' in {loaded.file} is a SourceAsset"
            hint = f"Dagster is removing SourceAsset: write it as AssetSpec({list(key.path)})."
            yield loading.finding(loaded.path, message, hint)


def _find_duplicates(loading: Loading, assets: Iterable[ModuleObject]) -> Iterator[Finding]:
    first: dict[AssetKey, ModuleObject] = {}
    for asset in assets:
        for key in _keys(asset.value):
            other = first.setdefault(key, asset)
            if other is not asset:
                where = f"in {other.file} and in {asset.file}"
                where = f"twice in {asset.file}" if other.file == asset.file else where
                message = f"the asset '{'.'.join(key.path)}' is defined {where}"
                yield loading.finding(asset.path, message, "Keep one of them.")


def _find_name_clashes(loading: Loading, objects: Iterable[ModuleObject]) -> Iterator[Finding]:
    """Find jobs, schedules and sensors of modules that floe.yaml declares too."""
    declared = loading.site.spec.orchestration
    kinds: list[tuple[str, type | tuple[type, ...], Iterable[str]]] = [
        ("jobs", _JOBS, declared.jobs),
        ("schedules", ScheduleDefinition, declared.schedules),
        ("sensors", SensorDefinition, declared.sensors),
    ]
    for loaded in objects:
        for section, kind, names in kinds:
            if isinstance(loaded.value, kind) and loaded.value.name in names:
                message = f"{loaded.file} defines one with the same name"
                path = ("orchestration", section, loaded.value.name)
                yield loading.finding(path, message, "Keep one of them.", at_key=True)


class DuplicateAssetError(FloeError):
    """An asset is defined twice; Dagster could run only one definition."""

    def __init__(self, asset: str, definitions: Iterable[str]) -> None:
        super().__init__(
            f"The asset '{asset}' is defined twice: by {' and by '.join(definitions)}. "
            "Remove one of them or rename it."
        )


class CircularAssetsError(FloeError):
    """Assets depend on each other in a cycle."""

    def __init__(self, cycles: list[list[str]]) -> None:
        shown = "; ".join(" → ".join([*cycle, cycle[0]]) for cycle in cycles)
        super().__init__(
            f"Assets depend on each other in a cycle: {shown}. Remove one of the dependencies."
        )


def check_assets(_: Loading, parts: Parts) -> Parts:
    """Reject duplicate assets and dependency cycles; otherwise change nothing."""
    functions = [asset for asset in parts.assets if isinstance(asset, AssetsDefinition)]
    counts = Counter(key for asset in functions for key in asset.keys)
    for key, times in counts.items():
        if times > 1:
            raise DuplicateAssetError(name_of(key), _definitions_of(parts, functions, key))
    cycles = find_cycles(_upstream(parts))
    if cycles:
        raise CircularAssetsError(cycles)
    return parts


def _definitions_of(
    parts: Parts, functions: Iterable[AssetsDefinition], key: AssetKey
) -> list[str]:
    """Return the definitions of an asset: the file of a Python asset first."""
    names = [f"'{asset.node_def.name}'" for asset in functions if key in asset.keys]
    return [parts.origins[key], *names[1:]] if key in parts.origins else names


def _upstream(parts: Parts) -> dict[str, set[str]]:
    """Return the upstream assets of each asset, without itself."""
    return {
        name_of(key): {name_of(dep.asset_key) for dep in spec.deps if dep.asset_key != key}
        for key, spec in parts.specs.items()
    }
