"""Read Dagster's event log and report every run to the catalog."""

from floe.orchestration.observing.asset_index import AssetIndex, index_assets
from floe.orchestration.observing.observer import (
    Observation,
    build_observer,
    observe,
    observe_run,
)

__all__ = ["AssetIndex", "Observation", "build_observer", "index_assets", "observe", "observe_run"]
