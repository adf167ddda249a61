"""Datasets that nobody here makes: feeds and what other projects own, as external assets."""

from collections.abc import Iterator
from dataclasses import replace

from dagster import AssetSpec

from floe.orchestration.describing import asset_key, group_of, kinds_of, owners_of, tags_of
from floe.orchestration.loading import Loading
from floe.orchestration.parts import Parts
from floe.spec import ProjectSpec


def build_external(loading: Loading, parts: Parts) -> Parts:
    """Add each dataset that is declared or read here, and that no asset of the project makes."""
    spec = loading.site.spec
    made = parts.specs
    found = (_external(spec, name) for name in _names(spec) if asset_key(name) not in made)
    return replace(parts, assets=(*parts.assets, *found))


def _names(spec: ProjectSpec) -> Iterator[str]:
    named = dict.fromkeys(spec.datasets)
    for process in spec.processes.values():
        named.update(dict.fromkeys(one.dataset for one in process.inputs.values()))
    yield from named


def _external(spec: ProjectSpec, name: str) -> AssetSpec:
    dataset = spec.datasets.get(name)
    if dataset is None:
        return AssetSpec(asset_key(name), group_name=group_of(name, None))
    return AssetSpec(
        asset_key(name),
        description=dataset.description or None,
        group_name=group_of(name, dataset),
        owners=owners_of(spec.owner_or_default(dataset.owner)),
        tags=tags_of(dataset.tags),
        kinds=kinds_of(None, dataset),
    )
