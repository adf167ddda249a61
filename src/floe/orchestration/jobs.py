"""Jobs: selections of assets, and functions for upkeep, that are started as one."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from dagster import (
    AssetKey,
    AssetsDefinition,
    AssetSelection,
    define_asset_job,
)

from floe.orchestration.executors import executor_for
from floe.orchestration.loading import Loading
from floe.orchestration.ops import build_ops_job, op_name
from floe.orchestration.parts import AnyPartitions, Parts
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
"""The tags of Dagster's own by which a user may say how runs are treated."""


def build_jobs(loading: Loading, parts: Parts) -> Parts:
    """Add the jobs that floe.yaml declares; all that is wrong with them is said at once."""
    jobs: dict[str, Any] = {}
    findings: list[Finding] = []
    for name, job in loading.site.spec.orchestration.jobs.items():
        try:
            _refuse(_check_names(loading, parts, name, job))
            jobs[name] = _build_job(loading, parts, name, job)
        except SpecError as error:
            findings += error.findings
    _refuse(findings)
    return replace(parts, jobs={**parts.jobs, **jobs}, executor=executor_for(loading.site))


def _build_job(loading: Loading, parts: Parts, name: str, job: BatchJob | OpsJob) -> Any:
    if isinstance(job, OpsJob):
        return build_ops_job(loading, parts, name, job)
    keys = assets_of(loading, parts, name)
    _refuse(_check_batch(loading, parts, name, keys))
    return define_asset_job(
        name,
        selection=AssetSelection.assets(*sorted(keys)),
        description=job.description or None,
        tags=job.tags,
        executor_def=executor_for(loading.site, job.executor),
    )


def _refuse(findings: Iterable[Finding]) -> None:
    if found := list(findings):
        raise SpecError(found)


def assets_of(loading: Loading, parts: Parts, name: str) -> Keys:
    """Return the assets that a job makes; none, when it calls a function."""
    job = loading.site.spec.orchestration.jobs[name]
    if isinstance(job, OpsJob):
        return frozenset()
    graph = AssetGraph(parts.specs)
    path = ("orchestration", "jobs", name, "selection")
    entries = [
        _select(loading, (*path, place), graph, text) for place, text in enumerate(job.selection)
    ]
    _refuse(entry for entry in entries if isinstance(entry, Finding))
    found = frozenset(key for entry in entries if not isinstance(entry, Finding) for key in entry)
    if not found & parts.executable:
        message = "matches only assets that are not made here"
        hint = f"Nothing in this project makes {_listed(found)}."
        raise loading.refusal(path, message, hint)
    return found & parts.executable


def _select(loading: Loading, path: KeyPath, graph: AssetGraph, text: str) -> Keys | Finding:
    try:
        keys = graph.select(text)
    except SelectionError as error:
        return loading.finding(path, error.what, error.hint)
    if not keys:
        hint = "Each part of it matches some, but no asset is in all of them."
        return loading.finding(path, f"'{text}' matches no asset", hint)
    return keys


def made_together(parts: Parts) -> Mapping[AssetKey, Keys]:
    """Return, for each asset that is never made alone, all that are made with it and itself."""
    return {
        key: frozenset(one.keys)
        for one in _definitions(parts)
        if len(one.keys) > 1 and not one.can_subset
        for key in one.keys
    }


def partitions_of(parts: Parts, keys: Iterable[AssetKey]) -> AnyPartitions | None:
    """Return what partitions assets of one job; None, when none of them has partitions."""
    return next(iter(by_partitions_of(parts, keys)), None)


def _definitions(parts: Parts) -> Iterator[AssetsDefinition]:
    for one in parts.assets:
        if isinstance(one, AssetsDefinition) and one.is_executable:
            yield one


def by_partitions_of(
    parts: Parts, keys: Iterable[AssetKey]
) -> Mapping[AnyPartitions, list[AssetKey]]:
    """Return the assets that each partition definition has; those without one are left out."""
    found: dict[AnyPartitions, list[AssetKey]] = {}
    for key in sorted(keys):
        partitions = parts.specs[key].partitions_def
        if partitions is not None:
            found.setdefault(partitions, []).append(key)
    return found


def _check_batch(loading: Loading, parts: Parts, name: str, keys: Keys) -> Iterator[Finding]:
    path = ("orchestration", "jobs", name, "selection")
    by_partitions = by_partitions_of(parts, keys)
    if len(by_partitions) > 1:
        named = {by: name for name, by in parts.partitions.items()}
        each = "; ".join(
            f"{_listed(some)} by {named.get(by, by)}" for by, some in by_partitions.items()
        )
        message = f"one run has one partition, and these are partitioned differently: {each}"
        hint = "Give each its own job, or the same partitions to all of them."
        yield loading.finding(path, message, hint)
    for together in dict.fromkeys(made_together(parts).values()):
        chosen, others = keys & together, together - keys
        if chosen and others:
            message = f"{_listed(chosen)} cannot be made without {_listed(others)}"
            hint = "They are made together: add the others."
            yield loading.finding(path, message, hint)


def _check_names(
    loading: Loading, parts: Parts, name: str, job: BatchJob | OpsJob
) -> Iterator[Finding]:
    """Find names that Dagster would refuse, each without a word about floe.yaml."""
    path = ("orchestration", "jobs", name)
    own = {name, op_name(name, job)} if isinstance(job, OpsJob) else {name}
    taken = next((one for one in _definitions(parts) if one.node_def.name in own), None)
    if taken is not None:
        message = f"the asset {_listed(taken.keys)} has the same name in Dagster"
        yield loading.finding(path, message, "Give the job another name.")
    for tag in job.tags:
        reserved = tag.startswith(_DAGSTERS_OWN) and tag not in _FOR_USERS
        if reserved or not _TAG.fullmatch(tag):
            message = f"'{tag}' is not a tag"
            hint = "Use letters, digits, _, - and dots, after one namespace/ other than dagster/."
            yield loading.finding((*path, "tags", tag), message, hint)
    if isinstance(job, BatchJob) and job.executor is not None:
        yield from _check_executor(loading, (*path, "executor"), job.executor)


def _check_executor(loading: Loading, path: KeyPath, executor: Executor) -> Iterator[Finding]:
    if executor.type == "in_process" and executor.max_concurrent is not None:
        at = (*path, "max_concurrent")
        yield loading.finding(at, "means nothing with in_process", "Use type: multiprocess.")


def _listed(keys: Collection[AssetKey]) -> str:
    names = sorted(name_of(key) for key in keys)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
