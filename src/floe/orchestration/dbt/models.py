"""dbt models, seeds and snapshots as assets, and tests as asset checks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from dagster import (
    AssetCheckKey,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    TableColumn,
    TableSchema,
    multi_asset,
)

from floe.orchestration.dbt.commands import selected_ids
from floe.orchestration.dbt.dbt_project import DbtProject, find_dbt
from floe.orchestration.dbt.manifest import load_manifest
from floe.orchestration.dbt.nodes import (
    MATERIALIZED,
    UNIQUE_ID,
    Manifest,
    Node,
    assets_of,
    check_key,
    check_spec,
    dataset_of,
    key_of,
    materialized,
    tests_of,
    upstream_of,
)
from floe.orchestration.dbt.step import Plan, run_step
from floe.orchestration.loading import Loading, Parts
from floe.orchestration.runtime import RESOURCE
from floe.spec.findings import Finding, KeyPath, SpecError
from floe.spec.identity import dataset_of_dagster_key

KINDS = frozenset({"dbt", "spark"})


@dataclass(frozen=True)
class Models:
    """The nodes of a manifest that become assets and checks."""

    project: DbtProject
    manifest: Manifest
    nodes: Mapping[str, Node]
    """The models, seeds and snapshots that take part, by unique id."""

    @cached_property
    def tests(self) -> list[tuple[Node, AssetKey]]:
        """The tests of these assets and of everything they read."""
        known = {key_of(node) for node in self.nodes.values()}
        known |= {key_of(parent) for node in self.nodes.values() for parent in self.reads(node)}
        return [(test, key) for test, key in tests_of(self.manifest) if key in known]

    def reads(self, node: Node) -> Iterator[Node]:
        return upstream_of(self.manifest, node)

    @cached_property
    def groups(self) -> Mapping[str, Mapping[str, Any]]:
        """dbt's groups, which have owners, by name."""
        return {group["name"]: group for group in self.manifest.get("groups", {}).values()}

    @cached_property
    def by_asset(self) -> dict[AssetKey, str]:
        return {key_of(node): name for name, node in self.nodes.items()}

    @cached_property
    def by_check(self) -> dict[AssetCheckKey, str]:
        return {check_key(test, key): str(test["unique_id"]) for test, key in self.tests}


def build_models(loading: Loading, parts: Parts) -> Parts:
    """Add the assets of the dbt project, if there is one."""
    project = find_dbt(loading)
    if project is None:
        return parts
    manifest = load_manifest(loading, project)
    nodes = assets_of(manifest)
    chosen = selected_ids(loading, project, manifest)
    if chosen is not None:
        nodes = {name: node for name, node in nodes.items() if name in chosen}
    if not nodes:
        return parts
    models = Models(project, manifest, nodes)
    as_one = project.config.observability_level == "job_level"
    assets = _project_asset(models) if as_one else _asset_per_node(models)
    return replace(parts, assets=(*parts.assets, assets))


def _asset_per_node(models: Models) -> AssetsDefinition:
    @multi_asset(
        name=_op_name(models.project),
        specs=[_spec(models, node) for node in models.nodes.values()],
        check_specs=list(_check_specs(models)),
        can_subset=True,
        required_resource_keys={RESOURCE},
        # Undocumented, but dagster-dbt relies on it too: a test of a source is a check of an asset
        # that this definition does not build.
        allow_arbitrary_check_specs=True,
    )
    def run_models(context: AssetExecutionContext) -> Iterator[Any]:
        assets = {models.by_asset[key]: key for key in context.selected_asset_keys}
        checks = {models.by_check[key]: key for key in context.selected_asset_check_keys}

        yield from run_step(context, Plan(models.project, models.manifest, assets, checks))

    return run_models


def _project_asset(models: Models) -> AssetsDefinition:
    """Return one asset for the whole project, which hides its models from Dagster."""
    built = set(models.by_asset)
    read = {key_of(parent) for node in models.nodes.values() for parent in models.reads(node)}
    spec = AssetSpec(
        key=["dbt", models.project.name],
        deps=[key for key in sorted(read) if key not in built],
        group_name=_word(models.project.name),
        description=f"All of the dbt project {models.project.name}.",
        kinds=set(KINDS),
        metadata={MATERIALIZED: "project"},
    )

    @multi_asset(name=_op_name(models.project), specs=[spec], required_resource_keys={RESOURCE})
    def run_project(context: AssetExecutionContext) -> Iterator[Any]:
        every = {name: key_of(node) for name, node in models.nodes.items()}
        tests = {name: key for key, name in models.by_check.items()}
        plan = Plan(models.project, models.manifest, every, tests, as_one=spec.key)
        yield from run_step(context, plan)

    return run_project


def _spec(models: Models, node: Node) -> AssetSpec:
    return AssetSpec(
        key=key_of(node),
        deps=[key_of(parent) for parent in models.reads(node)],
        description=node.get("description") or None,
        metadata=_metadata(node),
        group_name=_group(node),
        owners=_owners(models, node),
        tags={_word(tag, "_.-"): "" for tag in node.get("tags", ())},
        kinds=set(KINDS),
        code_version=node.get("checksum", {}).get("checksum"),
        skippable=True,
    )


def _check_specs(models: Models) -> Iterator[AssetCheckSpec]:
    for test, key in models.tests:
        yield check_spec(models.manifest, test, key)


def _metadata(node: Node) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        UNIQUE_ID: node["unique_id"],
        MATERIALIZED: materialized(node),
        "dagster/table_name": dataset_of(node),
    }
    columns: Sequence[Mapping[str, Any]] = list(node.get("columns", {}).values())
    if columns:
        metadata["dagster/column_schema"] = TableSchema(
            [
                TableColumn(
                    column["name"], column.get("data_type") or "?", column.get("description")
                )
                for column in columns
            ]
        )
    return metadata


def _group(node: Node) -> str:
    """Return the group that a model names, else its schema."""
    named = _dagster_meta(node).get("group") or node["config"].get("group")
    return _word(str(named or node["schema"]))


def _owners(models: Models, node: Node) -> list[str] | None:
    named = _dagster_meta(node).get("owners")
    if named:
        return list(named)
    group = models.groups.get(node["config"].get("group") or "", {})
    email = (group.get("owner") or {}).get("email")
    return ([email] if isinstance(email, str) else list(email)) if email else None


def _dagster_meta(node: Node) -> Mapping[str, Any]:
    meta = node["config"].get("meta") or node.get("meta") or {}
    settings: Mapping[str, Any] = meta.get("dagster") or {}
    return settings


def _op_name(project: DbtProject) -> str:
    return f"dbt_{_word(project.name)}"


def _word(text: str, allowed: str = "_") -> str:
    """Replace characters that Dagster does not allow in names."""
    return re.sub(rf"[^A-Za-z0-9{re.escape(allowed)}]", "_", text)


PIECEWISE = frozenset({"incremental", "snapshot"})


def check_partitions(loading: Loading, parts: Parts) -> Parts:
    """Reject partitions on models that dbt rebuilds whole."""
    findings = list(_find_unsuitable(loading, parts))
    if findings:
        raise SpecError(findings)
    return parts


def _find_unsuitable(loading: Loading, parts: Parts) -> Iterator[Finding]:
    for spec in parts.specs.values():
        kind = spec.metadata.get(MATERIALIZED)
        if kind is None or spec.partitions_def is None or kind in PIECEWISE:
            continue
        dataset = dataset_of_dagster_key(list(spec.key.path))
        message = f"dbt builds '{dataset}' as a {kind}: each partition would replace all of it"
        hint = "Make it incremental, or use a pattern that leaves it out."
        yield loading.finding(_declared(loading, spec), message, hint)


def _declared(loading: Loading, spec: AssetSpec) -> KeyPath:
    """Return the key in floe.yaml that gives an asset its partitions."""
    dataset = dataset_of_dagster_key(list(spec.key.path))
    patterns = loading.site.spec.orchestration.assets
    for pattern, config in patterns.items():
        if config.partitions is not None and fnmatchcase(dataset, pattern.replace("/", ".")):
            return ("orchestration", "assets", pattern, "partitions")
    return ("orchestration", "assets")
