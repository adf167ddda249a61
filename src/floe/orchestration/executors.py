"""What runs the steps of a job: one process for all of them, or several at once.

With Spark embedded everything shares the cores of one machine, and a process for each step costs
more than it gives. On a cluster the steps only wait for Spark, so several wait at once.
"""

from typing import Literal

from dagster import ExecutorDefinition, in_process_executor, multiprocess_executor

from floe.execution.site import Site
from floe.spec.orchestration import Executor


def executor_for(site: Site, wanted: Executor | None = None) -> ExecutorDefinition:
    """Return what a job asks for, else what the platform says, else what its Spark suggests."""
    wanted = wanted or Executor(type=site.platform.orchestrator.executor or _suited(site))
    if wanted.type == "in_process":
        return in_process_executor
    at_once = wanted.max_concurrent or _pool_size(site)
    if at_once is None:
        return multiprocess_executor
    return multiprocess_executor.configured({"max_concurrent": at_once})


def _suited(site: Site) -> Literal["in_process", "multiprocess"]:
    return "multiprocess" if is_on_cluster(site) else "in_process"


def is_on_cluster(site: Site) -> bool:
    """Tell whether the project's Spark is elsewhere, not one that floe starts on this machine."""
    url = site.compute().url
    return url is not None and not url.startswith("local")


def _pool_size(site: Site) -> int | None:
    """Return how many steps the platform's widest pool lets run at once; None: it has no pools."""
    return max(site.platform.orchestrator.pools.values(), default=None)
