"""All of the shop, as Dagster loads it."""

from floe import FloeDefinitions

definitions = FloeDefinitions.from_compiled_artifacts()
