"""The one line of Dagster that a project needs."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path

from dagster import Definitions

from floe.errors import FloeError
from floe.orchestration.assets import build_assets
from floe.orchestration.automation import build_automation
from floe.orchestration.backfills import check_backfills
from floe.orchestration.consistency import check_assets
from floe.orchestration.dbt.models import build_models
from floe.orchestration.dbt.partitioning import check_partitions
from floe.orchestration.drift import report_drift
from floe.orchestration.dynamic_partitions import build_dynamic_partitions
from floe.orchestration.external import build_external
from floe.orchestration.io_manager import build_io_manager
from floe.orchestration.jobs import build_jobs
from floe.orchestration.loading import Loading, load
from floe.orchestration.observing import build_observer
from floe.orchestration.outside import build_outside
from floe.orchestration.partitions import build_partitions
from floe.orchestration.parts import Parts
from floe.orchestration.process_jobs import build_process_jobs
from floe.orchestration.processes import build_processes
from floe.orchestration.ranges import build_ranges
from floe.orchestration.schedules import build_schedules
from floe.orchestration.sensors import build_sensors
from floe.orchestration.settings import apply_settings
from floe.orchestration.triggering import build_triggers
from floe.spec.collector import collector_paused

Builder = Callable[[Loading, Parts], Parts]

# In the order in which they stand on each other: assets, then what applies to them, then jobs,
# then what starts jobs.
BUILDERS: tuple[Builder, ...] = (
    build_partitions,
    build_assets,
    build_processes,
    build_ranges,
    build_models,
    build_external,
    build_io_manager,
    check_assets,
    apply_settings,
    check_partitions,
    build_automation,
    build_jobs,
    build_process_jobs,
    build_schedules,
    build_sensors,
    build_triggers,
    build_outside,
    build_observer,
    check_backfills,
    build_dynamic_partitions,
    report_drift,
)


_under_way: set[Path] = set()
"""The folders of the projects that are being loaded."""


class NestedLoadError(FloeError):
    """A module of a project loads the project that is loading it."""

    def __init__(self) -> None:
        super().__init__(
            "the project is being loaded, and this module loads it again. Name only modules that "
            "hold assets under orchestration.asset_modules, such as orchestration.assets."
        )


class FloeDefinitions:
    """A floe project as Dagster's definitions."""

    @staticmethod
    @collector_paused()
    def from_compiled_artifacts(path: str | Path | None = None) -> Definitions:
        """Turn a project into definitions: its assets, jobs, schedules, sensors and backfills.

        The path is that of `.floe/compiled_artifacts.json` or of the project's folder; without
        one the project is looked for in FLOE_PROJECT, here, and in the folders above.
        """
        definitions = build_parts(load(None if path is None else Path(path))).definitions()
        # Dagster asks for it next, and gets the same; made here, while the collector waits.
        definitions.get_repository_def()
        return definitions


def build_parts(loading: Loading) -> Parts:
    """Let every builder add its own, in order."""
    if loading.site.root in _under_way:
        raise NestedLoadError
    _under_way.add(loading.site.root)
    try:
        return reduce(lambda parts, build: build(loading, parts), BUILDERS, Parts())
    finally:
        _under_way.remove(loading.site.root)
