"""Find the assets that are written in Python, in the modules that floe.yaml names."""

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

from floe.execution.modules import ModuleNotLoadedError, load_package
from floe.orchestration.loading import Loading
from floe.orchestration.parts import Parts
from floe.spec.document import shown
from floe.spec.findings import Finding, KeyPath, SpecError

Asset = AssetsDefinition | AssetSpec
# A job over assets is of a class that Dagster does not name in public.
_JOBS: tuple[type, ...] = (JobDefinition, type(define_asset_job("any")))
_STARTERS = (ScheduleDefinition, SensorDefinition)
_TAKEN = (AssetsDefinition, AssetSpec, SourceAsset, *_JOBS, *_STARTERS)


@dataclass(frozen=True)
class Found:
    """A Dagster object in a module of the project."""

    value: Any
    file: str
    path: KeyPath
    """The key of floe.yaml that led to it."""


def build_assets(loading: Loading, parts: Parts) -> Parts:
    """Load the assets, asset checks and what else of Dagster the project's modules hold."""
    found, findings = _find_all(loading)
    findings += _outdated(loading, found)
    findings += _named_twice(loading, found)
    assets = _declared(found)
    findings += _twice(loading, assets)
    if findings:
        raise SpecError(findings)
    return replace(
        parts,
        assets=(*parts.assets, *(one.value for one in assets)),
        checks=(*parts.checks, *_of_type(found, AssetChecksDefinition)),
        origins={**parts.origins, **{key: one.file for one in assets for key in _keys(one.value)}},
        jobs={**parts.jobs, **{job.name: job for job in _of_type(found, _JOBS)}},
        schedules=(*parts.schedules, *_of_type(found, ScheduleDefinition)),
        sensors=(*parts.sensors, *_of_type(found, SensorDefinition)),
    )


def _find_all(loading: Loading) -> tuple[list[Found], list[Finding]]:
    """Import every module; one that is broken does not hide the mistakes of the next."""
    found: dict[int, Found] = {}
    findings: list[Finding] = []
    for index, reference in enumerate(loading.site.spec.orchestration.asset_modules):
        path = ("orchestration", "asset_modules", index)
        try:
            modules = _import(loading, path, reference)
        except SpecError as error:
            findings += error.findings
            continue
        for module in modules:
            file = shown(loading.site.root, Path(module.__file__ or module.__name__))
            for value in _objects(module):
                # A module may import the assets of another: they are those of the first.
                found.setdefault(id(value), Found(value, file, path))
    return list(found.values()), findings


def _import(loading: Loading, path: KeyPath, reference: str) -> list[ModuleType]:
    module = reference.lstrip(".")
    dots = len(reference) - len(module)
    if dots > 1:
        message = f"'{reference}' leads out of the project's folder"
        raise loading.refusal(path, message, "One dot stands for the folder of floe.yaml.")
    if dots and not _is_ours(loading.site.root, module):
        message = f"there is no module '{module}' in the project's folder"
        raise loading.refusal(path, message, "Write it without the dot if it is installed.")
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
        # Some of Dagster's own objects are tuples, and some of those refuse to be walked through.
        if isinstance(value, _TAKEN):
            yield value
        elif type(value) in (list, tuple):
            yield from (one for one in value if isinstance(one, _TAKEN))


def _of_type(found: Iterable[Found], kind: type | tuple[type, ...]) -> list[Any]:
    return [one.value for one in found if isinstance(one.value, kind)]


def _declared(found: Iterable[Found]) -> list[Found]:
    """Return the assets. A spec that a function of the project takes is part of that function."""
    kept = [one for one in found if isinstance(one.value, AssetsDefinition | AssetSpec)]
    kept = [one for one in kept if not isinstance(one.value, AssetChecksDefinition)]
    functions = [one.value for one in kept if isinstance(one.value, AssetsDefinition)]
    made = {key for one in functions for key in one.keys}
    return [one for one in kept if not (isinstance(one.value, AssetSpec) and one.value.key in made)]


def _keys(asset: Asset) -> Iterable[AssetKey]:
    return [asset.key] if isinstance(asset, AssetSpec) else asset.keys


def _outdated(loading: Loading, found: Iterable[Found]) -> Iterator[Finding]:
    for one in found:
        if isinstance(one.value, SourceAsset):
            key = one.value.key
            message = f"'{'.'.join(key.path)}' in {one.file} is a SourceAsset"
            hint = f"Dagster is giving those up: write it as AssetSpec({list(key.path)})."
            yield loading.finding(one.path, message, hint)


def _twice(loading: Loading, assets: Iterable[Found]) -> Iterator[Finding]:
    first: dict[AssetKey, Found] = {}
    for one in assets:
        for key in _keys(one.value):
            other = first.setdefault(key, one)
            if other is not one:
                where = f"in {other.file} and in {one.file}"
                where = f"twice in {one.file}" if other.file == one.file else where
                message = f"the asset '{'.'.join(key.path)}' is defined {where}"
                yield loading.finding(one.path, message, "Keep one of them.")


def _named_twice(loading: Loading, found: Iterable[Found]) -> Iterator[Finding]:
    """A job, schedule or sensor of a module must not have the name of one in floe.yaml."""
    declared = loading.site.spec.orchestration
    kinds: list[tuple[str, type | tuple[type, ...], Iterable[str]]] = [
        ("jobs", _JOBS, declared.jobs),
        ("schedules", ScheduleDefinition, declared.schedules),
        ("sensors", SensorDefinition, declared.sensors),
    ]
    for one in found:
        for section, kind, names in kinds:
            if isinstance(one.value, kind) and one.value.name in names:
                message = f"{one.file} has one of the same name"
                path = ("orchestration", section, one.value.name)
                yield loading.finding(path, message, "Keep one of them.", at_key=True)
