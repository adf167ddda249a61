"""Nodes of a dbt manifest: which dataset, asset or asset check each one is."""

from collections.abc import Iterator, Mapping
from typing import Any

from dagster import AssetCheckKey, AssetCheckSpec, AssetKey

from floe.spec.identity import dagster_key, dataset_of_table

Node = Mapping[str, Any]
Manifest = Mapping[str, Any]

ASSETS = frozenset({"model", "seed", "snapshot"})
UNIQUE_ID = "dbt/unique_id"
MATERIALIZED = "dbt/materialized"
"""Metadata of assets and checks: dbt's node id and materialization."""


def dataset_of(node: Node) -> str:
    """Return a node's dataset, such as `silver.stg_orders`."""
    return dataset_of_table(node["schema"], node.get("alias") or node["identifier"])


def key_of(node: Node) -> AssetKey:
    """Return the asset key of a node's dataset."""
    return AssetKey(dagster_key(dataset_of(node)))


def materialized(node: Node) -> str:
    """Return how dbt materializes a node: table, view, incremental, ephemeral …"""
    return str(node["config"].get("materialized", ""))


def is_asset(node: Node) -> bool:
    """Tell whether a node is an asset. Ephemeral models are not."""
    return node["resource_type"] in ASSETS and materialized(node) != "ephemeral"


def assets_of(manifest: Manifest) -> dict[str, Node]:
    """Return the models, seeds and snapshots that are assets, by unique id."""
    return {name: node for name, node in manifest["nodes"].items() if is_asset(node)}


def upstream_of(manifest: Manifest, node: Node) -> Iterator[Node]:
    """Yield the assets and sources that a node reads, also through ephemeral models."""
    seen: set[str] = set()
    waiting = list(reversed(node.get("depends_on", {}).get("nodes", ())))
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        parent = manifest["sources"].get(name) or manifest["nodes"].get(name)
        if parent is None:
            continue
        if parent["resource_type"] == "source" or is_asset(parent):
            yield parent
        elif parent["resource_type"] == "model":
            waiting += reversed(parent["depends_on"]["nodes"])


ERROR = "error"


def tests_of(manifest: Manifest) -> Iterator[tuple[Node, AssetKey]]:
    """Yield every test with the asset it checks."""
    for node in manifest["nodes"].values():
        if node["resource_type"] == "test":
            tested = list(_tested(manifest, node))
            if tested:
                yield node, tested[0]


def check_key(node: Node, asset: AssetKey) -> AssetCheckKey:
    return AssetCheckKey(asset, node["name"])


def check_spec(manifest: Manifest, node: Node, asset: AssetKey) -> AssetCheckSpec:
    """Turn a test into an asset check; severity error blocks downstream assets."""
    others = [key for key in _tested(manifest, node) if key != asset]
    return AssetCheckSpec(
        name=node["name"],
        asset=asset,
        description=node.get("description") or None,
        additional_deps=others,
        blocking=is_strict(node),
        metadata={UNIQUE_ID: node["unique_id"], "dbt/severity": severity_of(node)},
    )


def severity_of(node: Node) -> str:
    """Return the severity of a test: error or warn."""
    return str(node["config"].get("severity") or ERROR).lower()


def is_strict(node: Node) -> bool:
    """Tell whether a version that fails the test is rejected."""
    return severity_of(node) == ERROR


def _tested(manifest: Manifest, test: Node) -> Iterator[AssetKey]:
    """Yield the assets that a test reads, starting with the one it is declared on.

    A test that is declared on no model checks the first asset that it names.
    """
    named = [test.get("attached_node"), *test["depends_on"]["nodes"]]
    for name in dict.fromkeys(filter(None, named)):
        node = manifest["sources"].get(name) or manifest["nodes"].get(name)
        if node is not None and (node["resource_type"] == "source" or is_asset(node)):
            yield key_of(node)
