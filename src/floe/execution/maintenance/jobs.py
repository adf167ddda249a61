"""Upkeep as plain functions: arguments and results are what JSON can hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from getpass import getuser
from pathlib import Path
from typing import Any

from floe.execution.maintenance.analyzing import analyze_datasets
from floe.execution.maintenance.compacting import compact_datasets
from floe.execution.maintenance.retention import parse_retain
from floe.execution.maintenance.vacuuming import VacuumOrder, vacuum_datasets
from floe.execution.sparks import Sparks
from floe.execution.workspace import Workspace, load_site, open_workspace
from floe.settings import find_project


def vacuum(
    project: str | None = None,
    dataset: str | None = None,
    retain: str | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Remove what is past its retention. Without `retain` each dataset's own retention counts."""
    order = VacuumOrder(parse_retain(retain), dry_run=dry_run, actor=getuser())
    with _opened(project) as (workspace, sparks):
        report = vacuum_datasets(workspace, sparks, _names(dataset), order)
    return report.plain()


def compact(
    project: str | None = None, dataset: str | None = None, min_input_files: int = 5
) -> dict[str, Any]:
    """Rewrite small files of lake tables into larger ones."""
    with _opened(project) as (workspace, sparks):
        done = compact_datasets(workspace, sparks, _names(dataset), min_input_files)
    return {"tables": [asdict(one) for one in done]}


def analyze(project: str | None = None, dataset: str | None = None) -> dict[str, Any]:
    """Compute the statistics that queries are planned by, and count rows, files and bytes."""
    with _opened(project) as (workspace, sparks):
        done = analyze_datasets(workspace, sparks, _names(dataset))
    return {"datasets": [asdict(one) for one in done]}


def _names(dataset: str | None) -> list[str] | None:
    return None if dataset is None else [dataset]


@contextmanager
def _opened(project: str | None) -> Iterator[tuple[Workspace, Sparks]]:
    site = load_site(find_project(None if project is None else Path(project)))
    with open_workspace(site) as workspace:
        yield workspace, Sparks(site)
