"""A job for each process that datasets start, for the sensor that starts them."""

from collections import defaultdict
from dataclasses import replace

from dagster import AssetKey, AssetSelection, define_asset_job
from dagster._core.storage.tags import MAX_RETRIES_TAG, RETRY_ON_ASSET_OR_OP_FAILURE_TAG

from floe.orchestration.loading import Loading
from floe.orchestration.parts import Parts
from floe.orchestration.processes import PROCESS_TAG

STARTED_BY_DATASETS = frozenset({"dataset", "hybrid"})
PREFIX = "floe__"
DEATHS = 2
"""How often a run is started again whose process died. What it had begun is let go of before."""


def process_job_name(process: str) -> str:
    """Return the name of the job that runs a process when its inputs are ready."""
    return PREFIX + process.replace(".", "__")


def build_process_jobs(loading: Loading, parts: Parts) -> Parts:
    """Add a job for each process with the trigger dataset or hybrid.

    It is asked for with a partition key, or with the run tag `floe/business_date`.
    """
    jobs = dict(parts.jobs)
    keys: defaultdict[str, list[AssetKey]] = defaultdict(list)
    for key, spec in parts.specs.items():
        keys[str(spec.metadata.get(PROCESS_TAG))].append(key)
    for name, process in loading.site.spec.processes.items():
        if process.trigger not in STARTED_BY_DATASETS:
            continue
        job = process_job_name(name)
        if job in jobs:
            path = ("orchestration", "jobs", job)
            raise loading.refusal(path, f"is the job of the process '{name}'", "Rename it.")
        jobs[job] = define_asset_job(
            job,
            selection=AssetSelection.assets(*keys[name]),
            description=f"Runs {name} when the datasets that it reads are ready.",
            tags={PROCESS_TAG: name, **_retried(loading)},
        )
    return replace(parts, jobs=jobs)


def _retried(loading: Loading) -> dict[str, str]:
    """Let a run begin again that was killed: what datasets start, nobody is there to start."""
    declared = loading.site.platform.orchestrator.retries
    attempts = declared.attempts if "attempts" in declared.model_fields_set else DEATHS
    return {
        MAX_RETRIES_TAG: str(attempts),
        RETRY_ON_ASSET_OR_OP_FAILURE_TAG: str(declared.failed).lower(),
    }
