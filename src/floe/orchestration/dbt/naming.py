"""The schema of each dbt node, without what its target adds: the one place that maps them.

dbt puts `target.schema` before a model's schema, or instead of it, to keep environments apart in
one warehouse. Here each environment has a lake of its own, so the prefix is left out of the
dataset's name and of its table: both are the same in every environment.
"""

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from floe.orchestration.dbt.nodes import ASSETS, Manifest, Node, assets_of, dataset_of
from floe.orchestration.dbt.profile import target_schema
from floe.orchestration.dbt.project import DbtProject
from floe.orchestration.loading import Loading
from floe.spec.findings import Finding, SpecError
from floe.spec.identity import DEFAULT_SCHEMA

FILE_FORMAT, ICEBERG = "file_format", "iceberg"


def name_datasets(loading: Loading, project: DbtProject, manifest: dict[str, Any]) -> Manifest:
    """Give nodes the schemas of their datasets, and let readers of own tables wait for them.

    Refuse two nodes of one name, and nodes that read each other by way of sources.
    """
    prefixes = (target_schema(project), project.target)
    for node in [*manifest["nodes"].values(), *manifest["sources"].values()]:
        if node["resource_type"] in {*ASSETS, "source"}:
            node["schema"] = stable_schema(node["schema"], _asked_for(node), prefixes)
    findings = list(_find_twins(loading, project, manifest))
    if findings:
        raise SpecError(findings)
    _resolve_own_sources(manifest)
    _refuse_cycles(loading, project, manifest)
    return manifest


def stable_schema(schema: str, asked_for: str | None, prefixes: Sequence[str]) -> str:
    """Return the schema without the target: `dev_silver` → `silver`, `dev` → `default`.

    A macro may ignore the schema that a model asks for in some targets and put all into that of
    the target: then it is the one asked for.
    """
    bare = _without_prefix(schema, prefixes)
    if not bare and asked_for:
        bare = _without_prefix(asked_for, prefixes)
    return bare or DEFAULT_SCHEMA


def apply_names(manifest: Any, names: Manifest) -> None:
    """Have dbt use the schemas and dependencies of `names` in the manifest that it runs with.

    Tables are Iceberg tables unless the project says otherwise: dbt-spark would drop them with
    every run, and their versions with them.
    """
    for unique_id, node in [*manifest.nodes.items(), *manifest.sources.items()]:
        named = names["nodes"].get(unique_id) or names["sources"].get(unique_id)
        if named is None:
            continue
        if named["resource_type"] in {*ASSETS, "source"}:
            _move(node, named["schema"])
        if named["resource_type"] in ASSETS and not node.config.get(FILE_FORMAT):
            node.config[FILE_FORMAT] = ICEBERG
        for upstream in named.get("depends_on", {}).get("nodes", ()):
            if upstream not in node.depends_on.nodes:
                node.depends_on.nodes.append(upstream)


def _move(node: Any, schema: str) -> None:
    if node.schema == schema:
        return
    if node.relation_name:
        node.relation_name = node.relation_name.replace(node.schema, schema, 1)
    node.schema = schema


def _without_prefix(schema: str, prefixes: Sequence[str]) -> str:
    for prefix in sorted(filter(None, prefixes), key=len, reverse=True):
        if schema == prefix:
            return ""
        if schema.startswith(f"{prefix}_"):
            return schema.removeprefix(f"{prefix}_")
    return schema


def _asked_for(node: Node) -> str | None:
    config = node.get("config", {})
    asked: str | None = config.get("schema") or config.get("target_schema")
    return asked


def _find_twins(loading: Loading, project: DbtProject, manifest: Manifest) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for node in assets_of(manifest).values():
        dataset = dataset_of(node)
        if dataset in seen:
            message = f"{_named(node)} is '{dataset}', and so is {seen[dataset]}"
            hint = "Give one of them another alias or schema."
            yield loading.finding(project.declared, message, hint)
        seen[dataset] = _named(node)


def _resolve_own_sources(manifest: Manifest) -> None:
    """Make a `source()` that is the project's own seed or model a dependency on that node."""
    made = {dataset_of(node): name for name, node in assets_of(manifest).items()}
    own = {
        name: made[dataset_of(source)]
        for name, source in manifest["sources"].items()
        if dataset_of(source) in made
    }
    for name, node in manifest["nodes"].items():
        upstream = node.get("depends_on", {}).get("nodes")
        if upstream and own.keys() & set(upstream):
            resolved = dict.fromkeys(own.get(parent, parent) for parent in upstream)
            # A model may read its own table of the run before.
            node["depends_on"]["nodes"] = [parent for parent in resolved if parent != name]


def _refuse_cycles(loading: Loading, project: DbtProject, manifest: Manifest) -> None:
    graph = {
        name: node.get("depends_on", {}).get("nodes", ())
        for name, node in manifest["nodes"].items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " → ".join(str(name) for name in error.args[1])
        message = f"models of {project.name} read each other through source(): {circle}"
        hint = "Use ref() for a project's own models, and break the circle."
        raise loading.refusal(project.declared, message, hint) from None


def _named(node: Node) -> str:
    return f"{node['resource_type']} '{node['name']}' ({node['original_file_path']})"
