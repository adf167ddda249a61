"""Find the assets that a selection matches."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from dagster import AssetKey, AssetSpec

from floe.orchestration.selection.grammar import (
    Around,
    Both,
    Either,
    Expression,
    Named,
    Not,
    SelectionError,
    parse,
)
from floe.spec.identity import dataset_of_dagster_key
from floe.spec.nearby import suggest

Keys = frozenset[AssetKey]


@dataclass(frozen=True)
class AssetGraph:
    """The assets and their dependencies."""

    specs: Mapping[AssetKey, AssetSpec]

    @cached_property
    def upstream(self) -> Mapping[AssetKey, Collection[AssetKey]]:
        return {
            key: [dep.asset_key for dep in spec.deps if dep.asset_key in self.specs]
            for key, spec in self.specs.items()
        }

    @cached_property
    def downstream(self) -> Mapping[AssetKey, Collection[AssetKey]]:
        children: dict[AssetKey, list[AssetKey]] = {key: [] for key in self.specs}
        for key, parents in self.upstream.items():
            for parent in parents:
                children[parent].append(key)
        return children

    @cached_property
    def names(self) -> Mapping[AssetKey, str]:
        return {key: name_of(key) for key in self.specs}

    @cached_property
    def groups(self) -> Collection[str]:
        return {spec.group_name or _NO_GROUP for spec in self.specs.values()}

    @cached_property
    def tags(self) -> Collection[str]:
        return {tag for spec in self.specs.values() for tag in spec.tags}

    def select(self, text: str) -> Keys:
        """Return the assets of a selection; each name in it must match at least one."""
        return _keys(self, parse(text))


_NO_GROUP = "default"
"""The group of assets without a group in Dagster."""


def name_of(key: AssetKey) -> str:
    """Write a key as floe.yaml does: with dots."""
    return dataset_of_dagster_key(list(key.path))


def _keys(graph: AssetGraph, expression: Expression) -> Keys:
    match expression:
        case Named():
            return _named(graph, expression)
        case Not(of):
            return frozenset(graph.specs) - _keys(graph, of)
        case Both(parts):
            return frozenset.intersection(*(_keys(graph, part) for part in parts))
        case Either(parts):
            return frozenset.union(*(_keys(graph, part) for part in parts))
        case Around(of, up, down):
            start = _keys(graph, of)
            return _walk(start, graph.upstream, up) | _walk(start, graph.downstream, down)


def _walk(start: Keys, edges: Mapping[AssetKey, Collection[AssetKey]], steps: int) -> Keys:
    seen, frontier = set(start), set(start)
    while frontier and steps > 0:
        frontier = {key for parent in frontier for key in edges[parent]} - seen
        seen |= frontier
        steps -= 1
    return frozenset(seen)


def _named(graph: AssetGraph, named: Named) -> Keys:
    keys = frozenset(filter(_rule(graph, named), graph.specs))
    if not keys:
        raise _no_match(graph, named)
    return keys


def _rule(graph: AssetGraph, named: Named) -> Callable[[AssetKey], bool]:
    if named.kind == "asset":
        pattern = named.name.replace("/", ".")
        return lambda key: fnmatchcase(graph.names[key], pattern)
    if named.kind == "group":
        return lambda key: fnmatchcase(graph.specs[key].group_name or _NO_GROUP, named.name)
    return lambda key: _has_tag(graph.specs[key].tags, named.name, named.value)


def _has_tag(tags: Mapping[str, str], name: str, value: str | None) -> bool:
    return name in tags and (value is None or tags[name] == value)


def _no_match(graph: AssetGraph, named: Named) -> SelectionError:
    if named.kind == "group":
        hint = suggest(named.name, graph.groups)
        return SelectionError(f"there is no group '{named.name}'", hint, named.at)
    if named.kind == "tag":
        return _no_tag(graph, named)
    wanted = named.name.replace("/", ".")
    known = list(graph.names.values())
    hint = _ending_in(wanted, known) or suggest(wanted, known)
    return SelectionError(f"no asset is named '{named.name}'", hint, named.at)


def _no_tag(graph: AssetGraph, named: Named) -> SelectionError:
    if named.name not in graph.tags:
        hint = suggest(named.name, graph.tags, "No asset has that tag.")
        return SelectionError(f"there is no tag '{named.name}'", hint, named.at)
    values = {spec.tags[named.name] for spec in graph.specs.values() if named.name in spec.tags}
    what = f"no asset has the tag {named.name}={named.value}"
    return SelectionError(what, suggest(named.value or "", values), named.at)


def _ending_in(name: str, known: Iterable[str]) -> str:
    """Suggest the full key for a name that is only its last part."""
    match = next((key for key in sorted(known) if key.endswith(f".{name}")), None)
    return f"Did you mean '{match}'?" if match else ""
