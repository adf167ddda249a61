"""Read dbt's manifest, parse the project when it is stale, and name the datasets.

dbt puts `target.schema` before a model's schema, or instead of it, to keep environments apart in
one warehouse. In floe each environment has its own lake, so the prefix is left out of dataset and
table names: they are the same in every environment.
"""

import hashlib
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import msgspec

from floe.orchestration.dbt.commands import DbtFailedError, parse
from floe.orchestration.dbt.dbt_project import DbtProject, ensure_profile, find_dbt, target_schema
from floe.orchestration.dbt.nodes import ASSETS, Manifest, Node, assets_of, dataset_of
from floe.orchestration.loading import PRODUCTION, Loading, load
from floe.settings import ProjectPaths
from floe.spec.findings import Finding, SpecError
from floe.spec.identity import DEFAULT_SCHEMA

SOURCES = (".sql", ".yml", ".yaml", ".csv", ".py", ".md")
NOT_SOURCES = ("target", "dbt_packages", "dbt_modules", "logs")
STAMP = "sources.sha256"
_COMPILE = "Run: floe compile."
NO_DATABASES = "Cannot set database in spark"
"""dbt-spark's error for a project that names databases. It does not say where."""


def load_manifest(loading: Loading, project: DbtProject) -> Manifest:
    """Return the manifest; parse the project if it is stale, except in production."""
    if project.is_parsed_here:
        stale = _why_stale(project)
        if stale and loading.site.platform.environment == PRODUCTION:
            raise loading.refusal(project.declared, f"{_shown(project)} {stale}", _COMPILE)
        if stale:
            make_manifest(loading, project)
    return read_manifest(loading, project)


def make_manifest(loading: Loading, project: DbtProject) -> None:
    """Parse the project with dbt and store the fingerprint of its sources."""
    stamp = fingerprint(project)
    try:
        parse(project)
    except DbtFailedError as error:
        message = f"dbt cannot parse {project.shown(project.folder)}: {error.reason}"
        raise loading.refusal(project.declared, message, _hint(error.reason)) from error
    file = project.state / STAMP
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(stamp, encoding="utf-8")


def _hint(reason: str) -> str:
    if NO_DATABASES in reason:
        return (
            "Spark has no databases above schemas: remove 'database' (and 'target_database') from "
            "sources, models, seeds and snapshots. platform.yaml names the lake."
        )
    return "Correct the dbt project."


def fingerprint(project: DbtProject) -> str:
    """Return a hash of everything that determines the manifest."""
    digest = hashlib.sha256(repr((project.target, sorted(project.vars.items()))).encode())
    profiles = ensure_profile(project) / "profiles.yml"
    files = {str(path.relative_to(project.folder)): path for path in _sources(project.folder)}
    if profiles.is_file():
        files[""] = profiles
    for name in sorted(files):
        digest.update(name.encode())
        digest.update(files[name].read_bytes())
    return digest.hexdigest()


def _why_stale(project: DbtProject) -> str:
    if not project.manifest.is_file():
        return "does not exist"
    noted = project.state / STAMP
    if not noted.is_file() or noted.read_text(encoding="utf-8") != fingerprint(project):
        return "does not match the dbt project"
    return ""


def read_manifest(loading: Loading, project: DbtProject) -> Manifest:
    """Read the manifest, or say what is wrong with it and how to write it."""
    where = (
        project.declared if project.is_parsed_here else ("orchestration", "dbt", "manifest_path")
    )
    makes = _COMPILE if project.is_parsed_here else "Run: dbt parse."
    try:
        content = msgspec.json.decode(project.manifest.read_bytes())
    except FileNotFoundError:
        raise loading.refusal(where, f"{_shown(project)} does not exist", makes) from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{_shown(project)} is not a dbt manifest: {error}"
        raise loading.refusal(where, message, makes) from None
    if not isinstance(content, dict) or not {"nodes", "sources", "metadata"} <= content.keys():
        message = f"{_shown(project)} is not a dbt manifest"
        raise loading.refusal(where, message, makes)
    return name_datasets(loading, project, content)


def _sources(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir():
            if path.name not in NOT_SOURCES and not path.name.startswith("."):
                yield from _sources(path)
        elif path.suffix in SOURCES:
            yield path


def _shown(project: DbtProject) -> str:
    return project.shown(project.manifest)


FILE_FORMAT, ICEBERG = "file_format", "iceberg"


def name_datasets(loading: Loading, project: DbtProject, manifest: dict[str, Any]) -> Manifest:
    """Set each node's schema to its dataset's, and resolve sources to the project's own models.

    Refuse two nodes with one dataset name, and cycles through sources.
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

    A macro may ignore a model's schema in some targets and use the target's schema for all. Then
    the schema that the model asks for counts.
    """
    bare = _without_prefix(schema, prefixes)
    if not bare and asked_for:
        bare = _without_prefix(asked_for, prefixes)
    return bare or DEFAULT_SCHEMA


def apply_names(manifest: Any, names: Manifest) -> None:
    """Copy the schemas and dependencies of `names` into the manifest that dbt runs.

    Tables are Iceberg tables unless the project says otherwise, because dbt-spark drops tables of
    other formats in every run, and their versions with them.
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
    """Resolve a `source()` that is the project's own seed or model to that node."""
    models = {dataset_of(node): name for name, node in assets_of(manifest).items()}
    own = {
        name: models[dataset_of(source)]
        for name, source in manifest["sources"].items()
        if dataset_of(source) in models
    }
    for name, node in manifest["nodes"].items():
        upstream = node.get("depends_on", {}).get("nodes")
        if upstream and own.keys() & set(upstream):
            resolved = dict.fromkeys(own.get(parent, parent) for parent in upstream)
            # A model may read the table that it wrote in the previous run.
            node["depends_on"]["nodes"] = [parent for parent in resolved if parent != name]


def _refuse_cycles(loading: Loading, project: DbtProject, manifest: Manifest) -> None:
    graph = {
        name: node.get("depends_on", {}).get("nodes", ())
        for name, node in manifest["nodes"].items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = " → ".join(str(name) for name in error.args[1])
        message = f"models of {project.name} read each other through source(): {cycle}"
        hint = "Use ref() for a project's own models, and break the cycle."
        raise loading.refusal(project.declared, message, hint) from None


def _named(node: Node) -> str:
    return f"{node['resource_type']} '{node['name']}' ({node['original_file_path']})"


def compile_dbt(paths: ProjectPaths) -> Path | None:
    """Parse the dbt project and check its manifest, for `floe compile`.

    Return the path of the manifest if floe wrote it.
    """
    loading = load(paths.root)
    project = find_dbt(loading)
    if project is None:
        return None
    if project.is_parsed_here:
        make_manifest(loading, project)
    read_manifest(loading, project)
    return project.manifest if project.is_parsed_here else None
