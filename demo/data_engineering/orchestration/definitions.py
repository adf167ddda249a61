"""The definitions of the shop, as Dagster loads them."""

from floe import FloeDefinitions

definitions = FloeDefinitions.from_compiled_artifacts()
