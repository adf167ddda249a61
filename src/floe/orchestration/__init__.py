"""The only place that speaks Dagster: floe.yaml becomes definitions, and runs are observed."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from floe.orchestration.definitions import FloeDefinitions
    from floe.orchestration.dynamic_partitions import add_partitions

__all__ = ["FloeDefinitions", "add_partitions"]


def __getattr__(name: str) -> Any:
    # Dagster takes a second to import, and whoever only starts it can do without.
    if name == "FloeDefinitions":
        from floe.orchestration.definitions import FloeDefinitions

        return FloeDefinitions
    if name == "add_partitions":
        from floe.orchestration.dynamic_partitions import add_partitions

        return add_partitions
    raise AttributeError(f"module 'floe.orchestration' has no attribute '{name}'")
