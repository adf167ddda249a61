"""What Dagster loads for a project that has no definitions.py of its own."""

from floe.orchestration.definitions import FloeDefinitions

definitions = FloeDefinitions.from_compiled_artifacts()
