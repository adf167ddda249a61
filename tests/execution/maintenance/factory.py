"""Real versions and their rows, for tests of maintenance."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from floe import clock
from floe.catalog.processes import register_process
from floe.catalog.runs import record_inputs
from floe.catalog.version_queries import get_version_of
from floe.execution.formats.lake_tables import LakeTable
from floe.execution.site import Site
from floe.execution.versions.drafts import (
    audit_draft,
    publish_draft,
    reserve_draft,
    write_draft,
)
from floe.execution.versions.previews import choose_version, read_version
from floe.execution.versions.version_access import table_lease
from floe.execution.workspace import Workspace, open_workspace
from floe.spec import ProjectSpec
from floe.spec.processes import WriteMode
from tests.catalog.graph import start_run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

MONDAY, TUESDAY, WEDNESDAY = (date(2026, 9, 7) + timedelta(days=n) for n in range(3))


def project(dataset: str, **facts: Any) -> dict[str, Any]:
    """A project with one dataset and the process that writes it."""
    return {
        "name": "test",
        "datasets": {dataset: facts},
        "processes": {"make": {"outputs": {"out": dataset}, "sql": "select 1 as id"}},
    }


def site_of(site: Site, declared: dict[str, Any], folder: Path) -> Site:
    """A site that uses the shared Spark server, and a catalog in a folder."""
    url = f"sqlite:///{folder / 'catalog.db'}"
    environ = {**os.environ, "FLOE_CATALOG_URL": url}
    return replace(site, spec=ProjectSpec.model_validate(declared), environ=environ)


@contextmanager
def opened(site: Site, declared: dict[str, Any], folder: Path) -> Iterator[Workspace]:
    with open_workspace(site_of(site, declared, folder)) as workspace:
        yield workspace


def new_name(what: str = "exposure") -> str:
    """A unique dataset name, because the lake is shared."""
    return f"credit.{what}_{uuid4().hex[:8]}"


def make_version(
    workspace: Workspace,
    spark: "SparkSession",
    dataset: str,
    day: date,
    rows: Sequence[tuple[Any, ...]],
    *,
    mode: WriteMode = "replace",
    schema: str = "id int, day string",
) -> str:
    """Write, check and publish a version; return its tag."""
    with workspace.leases.hold(table_lease(workspace, dataset), wait=None) as lease:
        draft = reserve_draft(
            workspace, dataset, day, partition=None, run_id=str(uuid4()), mode=mode, lease=lease
        )
        frame = spark.createDataFrame(list(rows), schema)
        draft = write_draft(workspace, spark, draft, frame)
        draft = audit_draft(workspace, spark, draft)
        publish_draft(workspace, spark, draft)
    return draft.stored.tag


def read(
    workspace: Workspace, spark: "SparkSession", dataset: str, tag: str | None = None
) -> "DataFrame":
    """Read a version; by default the newest READY one."""
    with workspace.catalog.reading() as session:
        version = choose_version(session, workspace, dataset, tag)
    return read_version(workspace, spark, dataset, version)


def state_of(workspace: Workspace, dataset: str, tag: str) -> str:
    with workspace.catalog.reading() as session:
        return get_version_of(session, workspace.dataset_id(dataset), tag).state


def age(workspace: Workspace, dataset: str, tag: str, days: int) -> None:
    """Backdate a version by some days."""
    with workspace.catalog.writing() as session:
        version = get_version_of(session, workspace.dataset_id(dataset), tag)
        version.produced_at = clock.now() - timedelta(days=days)


def read_by_a_run(workspace: Workspace, dataset: str, tag: str) -> str:
    """Record an unfinished run that reads a version; return the run's id."""
    run_id = str(uuid4())
    with workspace.catalog.writing() as session:
        process = register_process(session, "floe/test/reader")
        run = start_run(session, run_id, process.process_id)
        record_inputs(session, run, [get_version_of(session, workspace.dataset_id(dataset), tag)])
    return run_id


def shown(workspace: Workspace, spark: "SparkSession", dataset: str) -> list[int]:
    """Return the ids that readers of the stable name see."""
    table = LakeTable.of(workspace.lake, dataset).sql
    return sorted(row.id for row in spark.table(table).select("id").collect())
