"""The nodes of a manifest, and what they are here: datasets, assets and their upstreams."""

from collections.abc import Iterator, Mapping
from typing import Any

from dagster import AssetKey

from floe.spec.identity import dagster_key, dataset_of_table

Node = Mapping[str, Any]
Manifest = Mapping[str, Any]

ASSETS = frozenset({"model", "seed", "snapshot"})


def dataset_of(node: Node) -> str:
    """Return the dataset that a node is: `silver.stg_orders`."""
    return dataset_of_table(node["schema"], node.get("alias") or node["identifier"])


def key_of(node: Node) -> AssetKey:
    """Return the asset that a node is: that of its dataset."""
    return AssetKey(dagster_key(dataset_of(node)))


def materialized(node: Node) -> str:
    """Return how dbt makes a node: table, view, incremental, ephemeral …"""
    return str(node["config"].get("materialized", ""))


def is_asset(node: Node) -> bool:
    """Tell whether a node is something that exists; what is ephemeral is part of its readers."""
    return node["resource_type"] in ASSETS and materialized(node) != "ephemeral"


def assets_of(manifest: Manifest) -> dict[str, Node]:
    """Return the models, seeds and snapshots that are assets, by dbt's own ids."""
    return {name: node for name, node in manifest["nodes"].items() if is_asset(node)}


def upstream_of(manifest: Manifest, node: Node) -> Iterator[Node]:
    """Yield what a node reads: other assets and sources, also by way of ephemeral models."""
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
