"""The Dagster instance of a project: open it, and prepare its database.

`python -m floe.orchestration.instance` prepares the database. It runs before any
other service, because two processes cannot create the tables at the same time.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dagster
from dagster import DagsterInstance

from floe.execution.site import Site
from floe.execution.workspace import load_site
from floe.orchestration.home import dagster_environ, is_prepared, prepared_by, write_home
from floe.settings import find_project

HOME = "DAGSTER_HOME"


@contextmanager
def open_instance(site: Site) -> Iterator[DagsterInstance]:
    """Open the instance that DAGSTER_HOME names, else the one in the project's folder."""
    if HOME in os.environ:
        with DagsterInstance.get() as instance:
            yield instance
        return
    write_home(site)
    with _environment(dagster_environ(site)), DagsterInstance.get() as instance:
        yield instance


@contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    """Set variables temporarily: Dagster finds its home only through the environment."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def prepare() -> None:
    """Create or upgrade the tables of Dagster's database, and set the pools' limits."""
    site = load_site(find_project())
    with DagsterInstance.get() as instance:
        # An upgrade scans every run, so it runs once per Dagster version.
        if not is_prepared(site):
            instance.upgrade()
            prepared_by(site).write_text(dagster.__version__, encoding="utf-8")
        set_pools(instance, site.platform.orchestrator.pools)


def set_pools(instance: DagsterInstance, pools: Mapping[str, int]) -> None:
    """Set the limit of each pool of platform.yaml, and delete those of removed pools."""
    storage = instance.event_log_storage
    for limit in storage.get_pool_limits():
        if limit.name not in pools:
            storage.delete_concurrency_limit(limit.name)
    for name, size in pools.items():
        storage.set_concurrency_slots(name, size)


if __name__ == "__main__":
    prepare()
