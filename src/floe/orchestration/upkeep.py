"""floe's own upkeep as functions that an ops job calls by name: vacuum, compact, analyze."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from getpass import getuser
from typing import Annotated, Any

from dagster import Failure, OpExecutionContext
from pydantic import Field

from floe.execution.maintenance.analyzing import analyze_datasets
from floe.execution.maintenance.choosing import LAKE
from floe.execution.maintenance.compacting import MIN_INPUT_FILES, compact_datasets
from floe.execution.maintenance.vacuuming import VacuumOrder, vacuum_datasets
from floe.execution.site import Site
from floe.orchestration.runtime import at_work
from floe.spec.findings import KeyPath
from floe.spec.nearby import suggest
from floe.spec.orchestration import OpsJob
from floe.spec.values import Duration

Datasets = Annotated[list[str], Field(min_length=1)]
Days = Annotated[float, Field(ge=0)]


def upkeep(site: Site, name: str) -> Callable[..., Any]:
    """Return one of floe's own functions, for a project."""
    functions: Mapping[str, Callable[..., Any]]
    functions = {"vacuum": vacuum, "compact": compact, "analyze": analyze}
    return partial(functions[name], site)


def vacuum(
    site: Site,
    *,
    context: OpExecutionContext,
    dataset: str | None = None,
    datasets: Datasets | None = None,
    retain: Duration | None = None,
    retention_days: Days | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Remove versions past their retention: that of each dataset, unless another is asked for."""
    age = timedelta(days=retention_days) if retention_days is not None else retain
    order = VacuumOrder(age, dry_run=dry_run, actor=getuser())
    names = _names(dataset, datasets)
    with at_work(site) as work:
        report = vacuum_datasets(work.workspace, work.sparks, names, order, context.log.info)
    # A dataset in use is taken by the next vacuum, unless it was this one that was asked for.
    undone = {**report.failed, **(report.skipped if names else {})}
    for name, reason in report.skipped.items():
        context.log.warning(f"{name} was left alone: {reason}")
    if undone:
        each = "; ".join(f"{name}: {reason}" for name, reason in undone.items())
        raise Failure(f"Not vacuumed: {each}", metadata={"result": report.plain()})
    return report.plain()


def compact(
    site: Site,
    *,
    context: OpExecutionContext,
    dataset: str | None = None,
    datasets: Datasets | None = None,
    min_input_files: Annotated[int, Field(ge=2)] = MIN_INPUT_FILES,
) -> dict[str, Any]:
    """Write the small files of lake tables together into larger ones."""
    names, say = _names(dataset, datasets), context.log.info
    with at_work(site) as work:
        done = compact_datasets(work.workspace, work.sparks, names, min_input_files, say)
    return {"tables": [asdict(one) for one in done]}


def analyze(
    site: Site,
    *,
    context: OpExecutionContext,
    dataset: str | None = None,
    datasets: Datasets | None = None,
) -> dict[str, Any]:
    """Compute the statistics that queries are planned by, and count rows, files and bytes."""
    with at_work(site) as work:
        names = _names(dataset, datasets)
        done = analyze_datasets(work.workspace, work.sparks, names, context.log.info)
    return {"datasets": [asdict(one) for one in done]}


def _names(dataset: str | None, datasets: Sequence[str] | None) -> list[str] | None:
    if dataset is None and datasets is None:
        return None
    return list(dict.fromkeys([*([dataset] if dataset else []), *(datasets or [])]))


def check_upkeep(
    site: Site, path: KeyPath, job: OpsJob, values: Mapping[str, Any]
) -> Iterator[tuple[KeyPath, str, str]]:
    """Find datasets that are not declared or cannot be compacted, and a retention said twice."""
    args = (*path, "args")
    one = values.get("dataset")
    named: list[tuple[KeyPath, str]] = [((*args, "dataset"), one)] if one is not None else []
    many = values.get("datasets") or []
    named += [((*args, "datasets", place), name) for place, name in enumerate(many)]
    for at, name in named:
        declared = site.spec.datasets.get(name)
        if declared is None:
            hint = suggest(name, site.spec.datasets, "Declare it under datasets.")
            yield at, f"there is no dataset '{name}'", hint
        elif job.target_function == "compact" and declared.format != LAKE:
            what = f"'{name}' has the format {declared.format}"
            yield at, what, f"Only lake tables (format: {LAKE}) can be compacted."
    if "retain" in values and "retention_days" in values:
        what, hint = "says again what retain says", "Keep one of the two."
        yield (*args, "retention_days"), what, hint
