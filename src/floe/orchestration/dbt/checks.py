"""Tests of dbt are checks of the assets they test."""

from collections.abc import Iterator

from dagster import AssetCheckKey, AssetCheckSpec, AssetKey

from floe.orchestration.dbt.nodes import Manifest, Node, is_asset, key_of

UNIQUE_ID = "dbt/unique_id"
ERROR = "error"


def tests_of(manifest: Manifest) -> Iterator[tuple[Node, AssetKey]]:
    """Yield every test with the asset that it is a check of."""
    for node in manifest["nodes"].values():
        if node["resource_type"] == "test":
            tested = list(_tested(manifest, node))
            if tested:
                yield node, tested[0]


def check_key(node: Node, asset: AssetKey) -> AssetCheckKey:
    """Return the name of a check: that of the test."""
    return AssetCheckKey(asset, node["name"])


def check_spec(manifest: Manifest, node: Node, asset: AssetKey) -> AssetCheckSpec:
    """Turn a test into a check. One of severity error stops what stands on the asset."""
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
    """Return how bad it is when a test fails: error or warn."""
    return str(node["config"].get("severity") or ERROR).lower()


def is_strict(node: Node) -> bool:
    """Tell whether a version that fails the test is no good."""
    return severity_of(node) == ERROR


def _tested(manifest: Manifest, test: Node) -> Iterator[AssetKey]:
    """Yield the assets that a test reads, the one first that it is declared on.

    One that is declared on none is a check of the first that it names.
    """
    named = [test.get("attached_node"), *test["depends_on"]["nodes"]]
    for name in dict.fromkeys(filter(None, named)):
        node = manifest["sources"].get(name) or manifest["nodes"].get(name)
        if node is not None and (node["resource_type"] == "source" or is_asset(node)):
            yield key_of(node)
