"""Turn a floe project into Dagster definitions."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path

from dagster import Definitions

from floe.errors import FloeError
from floe.orchestration.asset_settings import apply_settings, build_automation
from floe.orchestration.assets import build_assets, check_assets
from floe.orchestration.backfills import check_backfills
from floe.orchestration.dataset_triggers import build_triggers
from floe.orchestration.dbt.models import build_models, check_partitions
from floe.orchestration.external_assets import build_external, build_external_sensor
from floe.orchestration.instance import open_instance
from floe.orchestration.io_manager import build_io_manager
from floe.orchestration.jobs import build_jobs
from floe.orchestration.loading import Loading, Parts, load
from floe.orchestration.observing import build_observer
from floe.orchestration.partition_keys import (
    build_dynamic_partitions,
    partition_drift,
    report_drift,
)
from floe.orchestration.partitions import build_partitions
from floe.orchestration.processes import build_process_jobs, build_processes
from floe.orchestration.ranges import build_ranges
from floe.orchestration.schedules import build_schedules
from floe.orchestration.sensors import build_sensors
from floe.spec.loader import collector_paused

Builder = Callable[[Loading, Parts], Parts]

# The order matters: assets, then the settings that apply to them, then jobs, then what starts
# jobs.
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
    build_external_sensor,
    build_observer,
    check_backfills,
    build_dynamic_partitions,
    report_drift,
)


_loading_now: set[Path] = set()
"""The root folders of the projects that are being loaded."""


class NestedLoadError(FloeError):
    """A module of a project loads the project while that project is loading it."""

    def __init__(self) -> None:
        super().__init__(
            "the project is already being loaded, and this module loads it again. List only "
            "modules that define assets under orchestration.asset_modules, such as "
            "orchestration.assets."
        )


class FloeDefinitions:
    """Loads a floe project as Dagster definitions."""

    @staticmethod
    @collector_paused()
    def from_compiled_artifacts(path: str | Path | None = None) -> Definitions:
        """Return the definitions of a project: assets, jobs, schedules and sensors.

        `path` is `.floe/compiled_artifacts.json` or the project's folder. Without it, the project
        is searched in FLOE_PROJECT, the working directory and its parents.
        """
        definitions = build_parts(load(None if path is None else Path(path))).definitions()
        # Dagster asks for the repository next. It is built and cached here, while garbage
        # collection is paused.
        definitions.get_repository_def()
        return definitions


def build_parts(loading: Loading) -> Parts:
    """Run all builders in order."""
    if loading.site.root in _loading_now:
        raise NestedLoadError
    _loading_now.add(loading.site.root)
    try:
        return reduce(lambda parts, build: build(loading, parts), BUILDERS, Parts())
    finally:
        _loading_now.remove(loading.site.root)


def find_drift(project: Path | None = None) -> list[str]:
    """Describe materialized partitions that no longer exist, by asset."""
    loading = load(project)
    parts = build_parts(loading)
    with open_instance(loading.site) as instance:
        return partition_drift(instance, parts)
