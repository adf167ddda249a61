"""floe: a dataset-first data platform that takes old jobs along."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from floe.orchestration import FloeDefinitions

__all__ = ["FloeDefinitions", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Dagster takes a second to import: only whoever asks for it pays. By its name, because to
    # import any part of floe is not to have a way to Dagster.
    if name == "FloeDefinitions":
        return import_module("floe.orchestration").FloeDefinitions
    raise AttributeError(f"module 'floe' has no attribute '{name}'")
