"""The one line of Dagster that a project needs."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path

from dagster import Definitions

from floe.orchestration.loading import Loading, load
from floe.orchestration.partitions import build_partitions
from floe.orchestration.parts import Parts

Builder = Callable[[Loading, Parts], Parts]

# In the order in which they stand on each other: assets, then what applies to them, then jobs,
# then what starts jobs.
BUILDERS: tuple[Builder, ...] = (build_partitions,)


class FloeDefinitions:
    """A floe project as Dagster's definitions."""

    @staticmethod
    def from_compiled_artifacts(path: str | Path | None = None) -> Definitions:
        """Turn a project into definitions: its assets, jobs, schedules, sensors and backfills.

        The path is that of `.floe/compiled_artifacts.json` or of the project's folder; without
        one the project is looked for in FLOE_PROJECT, here, and in the folders above.
        """
        return build_parts(load(None if path is None else Path(path))).definitions()


def build_parts(loading: Loading) -> Parts:
    """Let every builder add its own, in order."""
    return reduce(lambda parts, build: build(loading, parts), BUILDERS, Parts())
