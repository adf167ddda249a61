"""Maintenance of the lake: `vacuum`, `compact` and `analyze`.

Arguments and results are plain values, so that jobs in floe.yaml can call these functions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from getpass import getuser
from pathlib import Path
from typing import Any

from floe.execution.maintenance.optimization import analyze_datasets, compact_datasets
from floe.execution.maintenance.retention import parse_retain
from floe.execution.maintenance.sweep import VacuumOptions, vacuum_datasets
from floe.execution.spark.session import SparkSessions
from floe.execution.workspace import Workspace, load_site, open_workspace
from floe.settings import find_project


def vacuum(
    project: str | None = None,
    dataset: str | None = None,
    retain: str | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Remove versions past their retention; `retain` overrides the declared age."""
    order = VacuumOptions(parse_retain(retain), dry_run=dry_run, actor=getuser())
    with _opened(project) as (workspace, sparks):
        report = vacuum_datasets(workspace, sparks, _names(dataset), order)
    return report.plain()


def compact(
    project: str | None = None, dataset: str | None = None, min_input_files: int = 5
) -> dict[str, Any]:
    """Rewrite small files of lake tables into larger ones."""
    with _opened(project) as (workspace, sparks):
        done = compact_datasets(workspace, sparks, _names(dataset), min_input_files)
    return {"tables": [asdict(table) for table in done]}


def analyze(project: str | None = None, dataset: str | None = None) -> dict[str, Any]:
    """Compute statistics for Spark's query planner; count rows, files and bytes."""
    with _opened(project) as (workspace, sparks):
        done = analyze_datasets(workspace, sparks, _names(dataset))
    return {"datasets": [asdict(table) for table in done]}


def _names(dataset: str | None) -> list[str] | None:
    return None if dataset is None else [dataset]


@contextmanager
def _opened(project: str | None) -> Iterator[tuple[Workspace, SparkSessions]]:
    site = load_site(find_project(None if project is None else Path(project)))
    with open_workspace(site) as workspace:
        yield workspace, SparkSessions(site)
