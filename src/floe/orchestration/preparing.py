"""`python -m floe.orchestration.preparing`: make Dagster's database ready for those who share it.

It runs alone, before the others: two of them at once would stumble over making the tables.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import dagster
from dagster import DagsterInstance

from floe.settings import find_project
from floe.spec import load_platform


def prepare() -> None:
    """Open Dagster's database, which makes or renews its tables, and set the pools' limits."""
    platform = load_platform(find_project(), os.environ)
    with DagsterInstance.get() as instance:
        _renew(instance)
        set_pools(instance, platform.orchestrator.pools)


def _renew(instance: DagsterInstance) -> None:
    """Bring the tables into the shape of another Dagster. It looks at every run: once is enough."""
    noted = Path(instance.root_directory) / "version"
    if noted.is_file() and noted.read_text() == dagster.__version__:
        return
    instance.upgrade()
    noted.write_text(dagster.__version__)


def set_pools(instance: DagsterInstance, pools: Mapping[str, int]) -> None:
    """Give each pool the limit that platform.yaml declares; one that it no longer has, none."""
    storage = instance.event_log_storage
    for limit in storage.get_pool_limits():
        if limit.name not in pools:
            storage.delete_concurrency_limit(limit.name)
    for name, size in pools.items():
        storage.set_concurrency_slots(name, size)


if __name__ == "__main__":
    prepare()
