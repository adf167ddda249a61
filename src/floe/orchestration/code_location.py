"""The code location that Dagster loads for a project without a definitions.py."""

from floe.orchestration.definitions import FloeDefinitions

definitions = FloeDefinitions.from_compiled_artifacts()
