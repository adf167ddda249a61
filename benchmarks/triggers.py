"""Deciding what a new version starts, in a big project and in a small one.

Every process reads its own feed for its date, the latest version of shared reference data, and
the previous process's output of the previous day. Each has run for some days.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from benchmarks.result import Result
from benchmarks.timing import fastest
from floe import clock
from floe.catalog.changes import last_position
from floe.catalog.processes import find_process
from floe.catalog.readiness import find_dataset_ids
from floe.catalog.runs import SUCCESS
from floe.catalog.tables import DatasetVersion, ProcessRun
from floe.catalog.versions import READY, reserve_version
from floe.execution.site import Site
from floe.execution.trigger_decisions import Page, read_page
from floe.execution.workspace import Workspace, open_workspace
from floe.settings import ProjectPaths
from floe.spec import PlatformSpec, ProjectSpec
from floe.spec.identity import DatasetId, floe_process, run_id, version_tag
from floe.triggers import Ready, Subscriptions

MANY, FEW = 10_000, 100
REPETITIONS = 30
TODAY, DAYS = date(2026, 9, 1), 5


def run() -> Iterator[Result]:
    with (
        tempfile.TemporaryDirectory() as folder,
        _opened(Path(folder), MANY) as many,
        _opened(Path(folder), FEW) as few,
    ):
        big, small = fastest(REPETITIONS, _decision(many), _decision(few))
    yield Result(
        f"one change among {MANY:,} processes / among {FEW}",
        big / small,
        2.0,
        note=f"{big * 1000:.2f} ms / {small * 1000:.2f} ms",
    )


def _decision(workspace: Workspace) -> Callable[[], object]:
    """Register one feed, and return the decision function: one process is ready for one date."""
    subscriptions = Subscriptions(workspace.site.spec)
    with workspace.catalog.reading() as session:
        before = last_position(session)
    with workspace.catalog.writing() as session:
        number = workspace.dataset_id("feed.of_50", session)
        reserve_version(session, number, TODAY, state=READY)

    def decide() -> Page:
        page = read_page(workspace, subscriptions, before)
        (found,) = page.decisions
        if not (isinstance(found, Ready) and found.process == "process_50"):
            raise AssertionError(f"the benchmark decides on something else: {found}")
        return page

    return decide


@contextmanager
def _opened(folder: Path, size: int) -> Iterator[Workspace]:
    """A registered project with a number of processes, each with its own history."""
    root = folder / str(size)
    root.mkdir()
    (root / "floe.yaml").write_text("name: many\n")
    spec = ProjectSpec.model_validate(_declared(size))
    with open_workspace(Site(ProjectPaths(root), spec, PlatformSpec(), {})) as workspace:
        _fill(workspace, size)
        yield workspace


def _declared(size: int) -> dict[str, Any]:
    feed = {"format": "csv", "location": "landing/{business_date}/*.csv"}
    datasets: dict[str, Any] = {f"feed.of_{n}": feed for n in range(size)}
    datasets |= {f"made.by_{n}": {} for n in range(size)}
    processes = {
        f"process_{n}": {
            "trigger": "dataset",
            "inputs": {
                "feed": f"feed.of_{n}",
                "reference": {"dataset": "feed.reference", "mapping": "latest"},
                "before": {
                    "dataset": f"made.by_{max(n - 1, 0)}",
                    "mapping": "previous_business_day",
                    "optional": True,
                },
            },
            "outputs": {"made": f"made.by_{n}"},
            "sql": "select 1",
        }
        for n in range(size)
    }
    return {
        "name": "many",
        "datasets": {**datasets, "feed.reference": feed},
        "processes": processes,
    }


def _fill(workspace: Workspace, size: int) -> None:
    """Give every feed versions of the previous days, with the runs that they started."""
    days = [TODAY - timedelta(days=back) for back in range(DAYS, 0, -1)]
    names = ["feed.reference", *(f"feed.of_{n}" for n in range(size))]
    with workspace.catalog.writing() as session:
        full = [DatasetId(workspace.lake, name).full_name for name in names]
        numbers = find_dataset_ids(session, full).values()
        session.execute(
            insert(DatasetVersion),
            [_version(number, day) for number in numbers for day in days],
        )
        for n in range(40, 60):
            key = floe_process("many", f"process_{n}").key
            process = find_process(session, key).process_id
            session.execute(insert(ProcessRun), [_run(key, process, day) for day in days])


def _run(key: str, process_id: int, day: date) -> dict[str, Any]:
    now = clock.now()
    return {
        "run_uuid": str(run_id(key, str(day))),
        "process_id": process_id,
        "business_date": day,
        "status": SUCCESS,
        "start_ts": now,
        "end_ts": now,
        "saw_success": True,
        "saw_failure": False,
        "attempt": 1,
        "historical": False,
        "created_at": now,
    }


def _version(dataset_id: int, day: date) -> dict[str, Any]:
    return {
        "dataset_id": dataset_id,
        "version_tag": version_tag(day, 1),
        "business_date": day,
        "seq": 1,
        "state": READY,
        "produced_at": clock.now(),
        "legal_hold": False,
    }
