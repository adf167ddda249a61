"""Batches run processes in dependency order, independent ones in parallel."""

import threading
from typing import Any

import pytest

from floe.execution.batch import DONE, FAILED, SKIPPED, BatchOptions, BatchReport, run_batch
from floe.execution.cancellation import Cancellation, CancelledError
from floe.execution.leases import LeaseTakenError
from floe.execution.recovery import find_batch, is_batch, repair
from tests.execution.workshop import TOTALS, TRADES, TUESDAY, OpenShop, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]
COPY = {"schema": TRADES["schema"]}


def chain(shop: Workshop, first: str = "select * from trades") -> None:
    """raw.trades → a → b, and an independent c."""
    shop.declare(
        {"raw.trades": TRADES, "risk.a": COPY, "risk.b": COPY, "risk.c": TOTALS},
        {
            "b": {"inputs": {"a": "risk.a"}, "outputs": {"b": "risk.b"}, "sql": "select * from a"},
            "a": {"inputs": {"trades": "raw.trades"}, "outputs": {"a": "risk.a"}, "sql": first},
            "c": {
                "inputs": {"trades": "raw.trades"},
                "outputs": {"c": "risk.c"},
                "sql": "select count(*) as trades, sum(amount) as amount from trades",
            },
        },
    )


def run(project: OpenShop, **wishes: Any) -> BatchReport:
    return run_batch(project.workspace, project.sparks, BatchOptions(TUESDAY, **wishes))


def states(report: BatchReport) -> dict[str, str]:
    return {outcome.process: outcome.state for outcome in report.outcomes}


def test_a_failure_skips_only_downstream_processes(shop: Workshop) -> None:
    chain(shop, first="select nothing from trades")
    with shop.open() as project:
        report = run(project)
        assert states(report) == {"a": FAILED, "b": SKIPPED, "c": DONE}
        assert not report.ok
        assert project.versions("risk.b") == []


def test_a_batch_resumes_where_it_stopped(shop: Workshop) -> None:
    chain(shop, first="select nothing from trades")
    with shop.open() as project:
        report = run(project)
    chain(shop)
    with shop.open() as project:
        repair(project.workspace, project.sparks)
        assert is_batch(project.workspace, report.batch)
        batch = find_batch(project.workspace, report.batch)
        assert batch.business_date == TUESDAY
        assert (set(batch.last), set(batch.done)) == ({"a", "c"}, {"c"})
        left = {name: run_id for name, run_id in batch.last.items() if name not in batch.done}
        before = project.states("risk.c")
        again = run(project, processes=["b", "a"], batch=report.batch, resumed=left)
        assert states(again) == {"b": DONE, "a": DONE}
        assert project.states("risk.c") == before


def test_a_stopped_batch_starts_no_more_processes(shop: Workshop) -> None:
    chain(shop)
    cancellation = Cancellation()
    with shop.open() as project:
        run(project, processes=["a"])
        cancellation.cancel(CancelledError("The run was stopped."))
        report = run_batch(
            project.workspace,
            project.sparks,
            BatchOptions(TUESDAY, processes=["b"]),
            cancellation=cancellation,
        )
        assert states(report) == {"b": SKIPPED}


def test_a_second_run_for_the_same_date_waits_or_is_refused(shop: Workshop) -> None:
    chain(shop)
    with shop.open() as project:
        run(project, processes=["a"])
        lease = f"run/floe/shop/b/{TUESDAY}"
        released = threading.Event()

        def run_b() -> None:
            project.run("b")
            released.set()

        with project.workspace.leases.hold(lease, wait=None):
            waiting = threading.Thread(target=run_b)
            waiting.start()
            waiting.join(2)
            assert not released.is_set()
        waiting.join()
        assert released.is_set()
    text = (shop.root / "floe.yaml").read_text()
    shop.write(text.replace("  b:\n", "  b:\n    concurrency: refuse\n", 1))
    with (
        shop.open() as project,
        project.workspace.leases.hold(lease, wait=None),
        pytest.raises(LeaseTakenError),
    ):
        project.run("b")


def test_the_checks_decide_on_announced_versions(shop: Workshop) -> None:
    from floe.catalog.versions import reserve_version
    from floe.execution.version_checks import check_version, check_waiting

    chain(shop)
    with shop.open() as project:
        dataset_id = project.workspace.dataset_id("raw.trades")
        with project.workspace.catalog.writing() as session:
            reserve_version(session, dataset_id, TUESDAY, state="WRITTEN")
        with project.sparks.session() as spark:
            (checked,) = check_waiting(project.workspace, spark)
            assert (checked.tag, checked.state) == ("2026-09-01.1", "READY")
            again = check_version(project.workspace, spark, "raw.trades", None)
            assert again.ok
            assert again.audited is not None
            assert again.audited.rows == 2
