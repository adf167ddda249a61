"""floe: a dataset-first data platform that legacy jobs can join without a rewrite."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from floe.orchestration import FloeDefinitions

__all__ = ["FloeDefinitions", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Import lazily, because Dagster takes a second to import. By name, so that the import contracts
    # do not see a dependency of every floe module on Dagster.
    if name == "FloeDefinitions":
        return import_module("floe.orchestration").FloeDefinitions
    raise AttributeError(f"module 'floe' has no attribute '{name}'")
