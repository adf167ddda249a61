"""floe on Dagster: definitions, launching and observing runs, backfills."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from floe.orchestration.definitions import FloeDefinitions
    from floe.orchestration.partition_keys import add_partitions

__all__ = ["FloeDefinitions", "add_partitions"]


def __getattr__(name: str) -> Any:
    # Importing Dagster takes a second; code that only starts its processes does not need it.
    if name == "FloeDefinitions":
        from floe.orchestration.definitions import FloeDefinitions

        return FloeDefinitions
    if name == "add_partitions":
        from floe.orchestration.partition_keys import add_partitions

        return add_partitions
    raise AttributeError(f"module 'floe.orchestration' has no attribute '{name}'")
