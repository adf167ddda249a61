"""`python -m floe.orchestration.preparing`: make Dagster's database ready for those who share it.

It runs alone, before the others: two of them at once would stumble over making the tables.
"""

from collections.abc import Mapping

import dagster
from dagster import DagsterInstance

from floe.execution.workspace import load_site
from floe.orchestration.home import is_prepared, prepared_by
from floe.settings import find_project


def prepare() -> None:
    """Open Dagster's database, which makes or renews its tables, and set the pools' limits."""
    site = load_site(find_project())
    with DagsterInstance.get() as instance:
        # It looks at every run: once is enough.
        if not is_prepared(site):
            instance.upgrade()
            prepared_by(site).write_text(dagster.__version__, encoding="utf-8")
        set_pools(instance, site.platform.orchestrator.pools)


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
