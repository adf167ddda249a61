"""Every model, seed and snapshot of a dbt project is an asset, with its tests as checks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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

from floe.orchestration.dbt.checks import UNIQUE_ID, check_key, check_spec, tests_of
from floe.orchestration.dbt.manifest import load_manifest
from floe.orchestration.dbt.nodes import (
    Manifest,
    Node,
    assets_of,
    dataset_of,
    key_of,
    materialized,
    upstream_of,
)
from floe.orchestration.dbt.project import DbtProject, find_dbt
from floe.orchestration.dbt.running import Plan, run_step
from floe.orchestration.dbt.selecting import selected_ids
from floe.orchestration.loading import Loading
from floe.orchestration.parts import Parts
from floe.orchestration.runtime import RESOURCE

MATERIALIZED = "dbt/materialized"
KINDS = frozenset({"dbt", "spark"})


@dataclass(frozen=True)
class Models:
    """What a manifest has that becomes assets and checks."""

    project: DbtProject
    manifest: Manifest
    nodes: Mapping[str, Node]
    """The models, seeds and snapshots that take part, by dbt's own ids."""

    @cached_property
    def tests(self) -> list[tuple[Node, AssetKey]]:
        """The tests that take part: those of assets that do, and of what these read."""
        known = {key_of(node) for node in self.nodes.values()}
        known |= {key_of(one) for node in self.nodes.values() for one in self.reads(node)}
        return [(test, key) for test, key in tests_of(self.manifest) if key in known]

    def reads(self, node: Node) -> Iterator[Node]:
        return upstream_of(self.manifest, node)

    @cached_property
    def groups(self) -> Mapping[str, Mapping[str, Any]]:
        """The groups of dbt, which have owners, by name."""
        return {one["name"]: one for one in self.manifest.get("groups", {}).values()}

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
    made = _one_asset(models) if as_one else _asset_each(models)
    return replace(parts, assets=(*parts.assets, made))


def _asset_each(models: Models) -> AssetsDefinition:
    @multi_asset(
        name=_op_name(models.project),
        specs=[_spec(models, node) for node in models.nodes.values()],
        check_specs=list(_check_specs(models)),
        can_subset=True,
        required_resource_keys={RESOURCE},
        # Not public, and what dagster-dbt itself does: a test of a source is a check of an asset
        # that somebody else makes.
        allow_arbitrary_check_specs=True,
    )
    def run_models(context: AssetExecutionContext) -> Iterator[Any]:
        assets = {models.by_asset[key]: key for key in context.selected_asset_keys}
        checks = {models.by_check[key]: key for key in context.selected_asset_check_keys}

        yield from run_step(context, Plan(models.project, models.manifest, assets, checks))

    return run_models


def _one_asset(models: Models) -> AssetsDefinition:
    """Make one asset of the whole project: its steps are dbt's own matter."""
    made = set(models.by_asset)
    read = {key_of(one) for node in models.nodes.values() for one in models.reads(node)}
    spec = AssetSpec(
        key=["dbt", models.project.name],
        deps=[key for key in sorted(read) if key not in made],
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
        deps=[key_of(one) for one in models.reads(node)],
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
    found: dict[str, Any] = {
        UNIQUE_ID: node["unique_id"],
        MATERIALIZED: materialized(node),
        "dagster/table_name": dataset_of(node),
    }
    columns: Sequence[Mapping[str, Any]] = list(node.get("columns", {}).values())
    if columns:
        found["dagster/column_schema"] = TableSchema(
            [
                TableColumn(one["name"], one.get("data_type") or "?", one.get("description"))
                for one in columns
            ]
        )
    return found


def _group(node: Node) -> str:
    """Return the group that a model names, else the schema: the layer that it is in."""
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
    found: Mapping[str, Any] = meta.get("dagster") or {}
    return found


def _op_name(project: DbtProject) -> str:
    return f"dbt_{_word(project.name)}"


def _word(text: str, allowed: str = "_") -> str:
    """Write a name in the letters that Dagster takes."""
    return re.sub(rf"[^A-Za-z0-9{re.escape(allowed)}]", "_", text)
