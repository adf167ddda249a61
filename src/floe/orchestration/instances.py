"""Open Dagster's memory of a project: its runs, its events, and its dynamic partitions."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dagster import DagsterInstance

from floe.execution.site import Site
from floe.orchestration.home import dagster_environ, write_home

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
    """Set variables for a while: Dagster reads where its memory is from nowhere else."""
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
