"""Jobs that floe.yaml declares: their assets, partitions and executor."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from dagster import (
    AssetKey,
    AssetsDefinition,
    AssetSelection,
    ExecutorDefinition,
    define_asset_job,
    in_process_executor,
    multiprocess_executor,
)

from floe.execution.site import Site
from floe.orchestration.loading import AnyPartitions, Loading, Parts
from floe.orchestration.ops_jobs import build_ops_job, op_name
from floe.orchestration.selection import AssetGraph, Keys, SelectionError, name_of
from floe.spec.findings import Finding, KeyPath, SpecError
from floe.spec.orchestration import BatchJob, Executor, OpsJob

_TAG = re.compile(r"([A-Za-z0-9_.-]{1,63}/)?[A-Za-z0-9_.-]{1,63}")
_DAGSTERS_OWN = "dagster/"
_FOR_USERS = {
    "dagster/isolation",
    "dagster/max_retries",
    "dagster/max_runtime",
    "dagster/priority",
    "dagster/retry_on_asset_or_op_failure",
    "dagster/retry_strategy",
}
"""The `dagster/` tags that users may set."""


def build_jobs(loading: Loading, parts: Parts) -> Parts:
    """Add the jobs that floe.yaml declares; report all errors together."""
    jobs: dict[str, Any] = {}
    findings: list[Finding] = []
    for name, job in loading.site.spec.orchestration.jobs.items():
        try:
            _raise_findings(_check_names(loading, parts, name, job))
            jobs[name] = _build_job(loading, parts, name, job)
        except SpecError as error:
            findings += error.findings
    _raise_findings(findings)
    return replace(parts, jobs={**parts.jobs, **jobs}, executor=executor_for(loading.site))


def _build_job(loading: Loading, parts: Parts, name: str, job: BatchJob | OpsJob) -> Any:
    if isinstance(job, OpsJob):
        return build_ops_job(loading, parts, name, job)
    keys = assets_of(loading, parts, name)
    _raise_findings(_check_batch(loading, parts, name, keys))
    return define_asset_job(
        name,
        selection=AssetSelection.assets(*sorted(keys)),
        description=job.description or None,
        tags=job.tags,
        executor_def=executor_for(loading.site, job.executor),
    )


def _raise_findings(findings: Iterable[Finding]) -> None:
    if collected := list(findings):
        raise SpecError(collected)


def assets_of(loading: Loading, parts: Parts, name: str) -> Keys:
    """Return the assets that a job materializes; empty for an ops job."""
    job = loading.site.spec.orchestration.jobs[name]
    if isinstance(job, OpsJob):
        return frozenset()
    graph = AssetGraph(parts.specs)
    path = ("orchestration", "jobs", name, "selection")
    entries = [
        _select(loading, (*path, index), graph, text) for index, text in enumerate(job.selection)
    ]
    _raise_findings(entry for entry in entries if isinstance(entry, Finding))
    selected = frozenset(
        key for entry in entries if not isinstance(entry, Finding) for key in entry
    )
    if not selected & parts.executable:
        message = "matches only external assets"
        hint = f"No asset or process of this project produces {_listed(selected)}."
        raise loading.refusal(path, message, hint)
    return selected & parts.executable


def _select(loading: Loading, path: KeyPath, graph: AssetGraph, text: str) -> Keys | Finding:
    try:
        keys = graph.select(text)
    except SelectionError as error:
        return loading.finding(path, error.what, error.hint)
    if not keys:
        hint = "Each part matches some assets, but none matches all parts."
        return loading.finding(path, f"'{text}' matches no asset", hint)
    return keys


def inseparable_assets(parts: Parts) -> Mapping[AssetKey, Keys]:
    """Return, for each asset that cannot run alone, all assets of its function."""
    return {
        key: frozenset(asset.keys)
        for asset in _definitions(parts)
        if len(asset.keys) > 1 and not asset.can_subset
        for key in asset.keys
    }


def partitions_of(parts: Parts, keys: Iterable[AssetKey]) -> AnyPartitions | None:
    """Return the partitions of a job's assets, or None if they have none."""
    return next(iter(by_partitions_of(parts, keys)), None)


def _definitions(parts: Parts) -> Iterator[AssetsDefinition]:
    for asset in parts.assets:
        if isinstance(asset, AssetsDefinition) and asset.is_executable:
            yield asset


def by_partitions_of(
    parts: Parts, keys: Iterable[AssetKey]
) -> Mapping[AnyPartitions, list[AssetKey]]:
    """Return the assets by partition definition, without unpartitioned assets."""
    by_partitions: dict[AnyPartitions, list[AssetKey]] = {}
    for key in sorted(keys):
        partitions = parts.specs[key].partitions_def
        if partitions is not None:
            by_partitions.setdefault(partitions, []).append(key)
    return by_partitions


def _check_batch(loading: Loading, parts: Parts, name: str, keys: Keys) -> Iterator[Finding]:
    path = ("orchestration", "jobs", name, "selection")
    by_partitions = by_partitions_of(parts, keys)
    if len(by_partitions) > 1:
        named = {by: name for name, by in parts.partitions.items()}
        each = "; ".join(
            f"{_listed(assets)} by {named.get(by, by)}" for by, assets in by_partitions.items()
        )
        message = f"its assets have different partitions, but one run has one partition: {each}"
        hint = "Use one job for each, or give all of them the same partitions."
        yield loading.finding(path, message, hint)
    for together in dict.fromkeys(inseparable_assets(parts).values()):
        chosen, others = keys & together, together - keys
        if chosen and others:
            message = f"{_listed(chosen)} cannot run without {_listed(others)}"
            hint = "One function computes them together: add the others."
            yield loading.finding(path, message, hint)


def _check_names(
    loading: Loading, parts: Parts, name: str, job: BatchJob | OpsJob
) -> Iterator[Finding]:
    """Find names that Dagster would reject without naming the line in floe.yaml."""
    path = ("orchestration", "jobs", name)
    own = {name, op_name(name, job)} if isinstance(job, OpsJob) else {name}
    taken = next((asset for asset in _definitions(parts) if asset.node_def.name in own), None)
    if taken is not None:
        message = f"the asset {_listed(taken.keys)} has the same name in Dagster"
        yield loading.finding(path, message, "Give the job another name.")
    for tag in job.tags:
        reserved = tag.startswith(_DAGSTERS_OWN) and tag not in _FOR_USERS
        if reserved or not _TAG.fullmatch(tag):
            message = f"'{tag}' is not a valid tag"
            hint = (
                "Use letters, digits, _, - and dots, optionally after one namespace/ other than "
                "dagster/."
            )
            yield loading.finding((*path, "tags", tag), message, hint)
    if isinstance(job, BatchJob) and job.executor is not None:
        yield from _check_executor(loading, (*path, "executor"), job.executor)


def _check_executor(loading: Loading, path: KeyPath, executor: Executor) -> Iterator[Finding]:
    if executor.type == "in_process" and executor.max_concurrent is not None:
        at = (*path, "max_concurrent")
        yield loading.finding(at, "has no effect with in_process", "Use type: multiprocess.")


def _listed(keys: Collection[AssetKey]) -> str:
    names = sorted(name_of(key) for key in keys)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def executor_for(site: Site, wanted: Executor | None = None) -> ExecutorDefinition:
    """Return the executor of a job: its own, else the platform's, else by its Spark."""
    wanted = wanted or Executor(type=site.platform.orchestrator.executor or _default_executor(site))
    if wanted.type == "in_process":
        return in_process_executor
    at_once = wanted.max_concurrent or _pool_size(site)
    if at_once is None:
        return multiprocess_executor
    return multiprocess_executor.configured({"max_concurrent": at_once})


def _default_executor(site: Site) -> Literal["in_process", "multiprocess"]:
    return "multiprocess" if is_on_cluster(site) else "in_process"


def is_on_cluster(site: Site) -> bool:
    """Tell whether the project's Spark is a cluster, not local to this machine."""
    url = site.compute().url
    return url is not None and not url.startswith("local")


def _pool_size(site: Site) -> int | None:
    """Return the size of the platform's largest pool, or None without pools."""
    return max(site.platform.orchestrator.pools.values(), default=None)
