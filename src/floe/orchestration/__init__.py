"""The only place that speaks Dagster: floe.yaml becomes definitions, and runs are observed."""

from floe.orchestration.definitions import FloeDefinitions

__all__ = ["FloeDefinitions"]
