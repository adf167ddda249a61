"""kill -9 between any two steps of a publish: readers see whole versions, and the next run repairs.

The soak test also kills floe and Spark in turn at random times.
"""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from floe.catalog.runs import list_runs
from floe.cli import app
from floe.execution import faults
from floe.execution.faults import POINTS
from floe.execution.recovery import repair
from floe.execution.spark.server import Server, ensure_server, server_status, stop_server
from floe.execution.workspace import load_site
from floe.settings import ProjectPaths
from tests.execution.workshop import (
    FLOE,
    TOTAL_SQL,
    TOTALS,
    TRADES,
    TUESDAY,
    OpenShop,
    Workshop,
)
from tools.processes import running

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.soak]
ROUNDS = int(os.environ.get("FLOE_SOAK_ROUNDS", "0"))
RIGHT = [(2, 15.5)]
# Seconds per row: Spark calls Java to sleep.
SLOW = 6
SLOW_SQL = f"""
    SELECT * FROM ({TOTAL_SQL})
    WHERE coalesce(reflect('java.lang.Thread', 'sleep', CAST({SLOW}000 AS BIGINT)), '') <> 'x'
"""


@pytest.fixture
def shop(tmp_path: Path, spark_server: Server) -> Workshop:
    return make_shop(tmp_path, spark_server)


@pytest.fixture(scope="module")
def own_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """A project with its own Spark server, which tests kill."""
    shop = make_shop(tmp_path_factory.mktemp("own_shop"), None)
    yield shop
    stop_server(load_site(ProjectPaths(shop.root)))


def make_shop(root: Path, server: Server | None) -> Workshop:
    shop = Workshop(root, server)
    declare_totals(shop, attempts=3)
    shop.deliver(TUESDAY, (1, 10.0), (2, 5.5))
    return shop


def declare_totals(shop: Workshop, attempts: int, sql: str = TOTAL_SQL) -> None:
    shop.declare(
        {"raw.trades": TRADES, "risk.totals": TOTALS},
        {"totals": {"inputs": {"trades": "raw.trades"}, "outputs": {"totals": "risk.totals"},
                    "sql": sql, "retry": {"max_attempts": attempts, "delay": "1s"}}},
    )  # fmt: skip


def floe_here(shop: Workshop, *arguments: str) -> Result:
    """Run a command in this process, which is faster; the result has its exception."""
    return CliRunner().invoke(app, [*arguments, "--project", str(shop.root)], env=shop.environ)


def resume(shop: Workshop, run_id: str) -> None:
    done = floe_here(shop, "run", "--resume", run_id)
    assert done.exit_code == 0, done.output


def run_and_kill_spark(shop: Workshop, point: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Run in this process, and kill the project's Spark server at a point of the publish."""
    server = ensure_server(load_site(ProjectPaths(shop.root)))
    monkeypatch.setattr(faults, "_passes", {})
    with monkeypatch.context() as during:
        during.setenv(faults.POINT, point)
        during.setenv(faults.VICTIM, str(server.pid))
        done = floe_here(shop, "run", "totals", "--date", str(TUESDAY), "--json")
    assert server_status(load_site(ProjectPaths(shop.root))).pid != server.pid
    return done


def last_run(project: OpenShop) -> Any:
    with project.workspace.catalog.reading() as session:
        return list_runs(session, limit=1)[0]


def check_versions_are_whole(project: OpenShop, known: set[str] | None = None) -> None:
    """Check that every READY version and the stable name are whole.

    Versions in `known` are not read again, because in a hundred rounds that would be most.
    """
    known = set() if known is None else known
    for tag, state in project.states("risk.totals").items():
        if state in ("READY", "SUPERSEDED") and tag not in known:
            assert project.rows("risk.totals", tag) == RIGHT
            known.add(tag)
    with project.sparks.session() as spark:
        if spark.catalog.tableExists("lake.risk.totals"):
            assert project.main("risk.totals") in ([], RIGHT)


def check_everything_is_repaired(project: OpenShop) -> None:
    """Check that no version is unfinished, no run open and no branch left."""
    assert not {"WRITING", "PUBLISHING"} & set(project.states("risk.totals").values())
    with project.workspace.catalog.reading() as session:
        assert not list_runs(session, statuses=["STARTED"])
    with project.sparks.session() as spark:
        refs = spark.sql("select name, type from lake.risk.totals.refs").collect()
        assert {row.name for row in refs if row.type == "BRANCH"} == {"main"}


@pytest.mark.parametrize("point", POINTS)
def test_floe_killed_between_two_steps_of_a_publish(shop: Workshop, point: str) -> None:
    killed = shop.floe("run", "totals", "--date", str(TUESDAY), fault=point, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    with shop.open() as project:
        run_id = last_run(project).run_uuid
        check_versions_are_whole(project)
    resume(shop, run_id)
    with shop.open() as project:
        check_versions_are_whole(project)
        check_everything_is_repaired(project)
        states = list(project.states("risk.totals").values())
        assert states.count("READY") == 1
        # A version in PUBLISHING is whole: it is finished, not written again.
        expected = 1 if POINTS.index(point) >= POINTS.index("announced") else 2
        assert len(states) == expected
    # Whichever run reported it, the lineage of the version is recorded.
    lineage = floe_here(shop, "lineage", "risk.totals", "--columns", "--json").output
    assert "raw.trades" in lineage


def test_the_next_run_repairs_first(shop: Workshop) -> None:
    shop.floe("run", "totals", "--date", str(TUESDAY), fault="written", check=False)
    done = shop.floe("run", "totals", "--date", str(TUESDAY))
    assert "Repaired risk.totals 2026-09-01.1: ABANDONED" in done.stdout
    with shop.open() as project:
        check_everything_is_repaired(project)
        assert project.states("risk.totals") == {
            "2026-09-01.1": "ABANDONED",
            "2026-09-01.2": "READY",
        }


def test_a_write_that_spark_continues_for_a_killed_floe_does_not_come_back(shop: Workshop) -> None:
    shop.floe("run", "totals", "--date", str(TUESDAY))
    declare_totals(shop, attempts=1, sql=SLOW_SQL)
    run = running(
        [str(FLOE), "run", "totals", "--date", str(TUESDAY)],
        cwd=shop.root,
        env={**os.environ, **shop.environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with run as process, shop.open() as project:
        while "WRITING" not in project.states("risk.totals").values():
            time.sleep(0.1)
        time.sleep(SLOW / 2)
        process.kill()
        process.wait()
        repair(project.workspace, project.sparks)
        # By now Spark would have written the branch that the repair dropped.
        time.sleep(SLOW)
        check_everything_is_repaired(project)


@pytest.mark.parametrize("point", POINTS)
def test_spark_killed_between_two_steps_of_a_publish(
    own_shop: Workshop, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_totals(own_shop, attempts=1)
    with own_shop.open() as project:
        before = project.states("risk.totals")
    done = run_and_kill_spark(own_shop, point, monkeypatch)
    # After this point Spark is no longer needed.
    published = POINTS.index(point) >= POINTS.index("published")
    assert (done.exit_code == 0) == published, done.output
    with own_shop.open() as project:
        run_id = last_run(project).run_uuid
        check_versions_are_whole(project)
    resume(own_shop, run_id)
    with own_shop.open() as project:
        check_versions_are_whole(project)
        check_everything_is_repaired(project)
        states = [
            state for tag, state in project.states("risk.totals").items() if tag not in before
        ]
        announced = POINTS.index(point) >= POINTS.index("announced")
        assert states == (["READY"] if announced else ["ABANDONED", "READY"])


@pytest.mark.parametrize("point", ["written", "announced"])
def test_a_run_whose_spark_is_killed_starts_another_and_continues(
    own_shop: Workshop, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_totals(own_shop, attempts=3)
    done = run_and_kill_spark(own_shop, point, monkeypatch)
    assert json.loads(done.stdout)["attempts"] == 2
    with own_shop.open() as project:
        repair(project.workspace, project.sparks)
        check_versions_are_whole(project)
        check_everything_is_repaired(project)


@pytest.mark.skipif(not ROUNDS, reason="soak test: set FLOE_SOAK_ROUNDS")
@pytest.mark.timeout(0)
def test_floe_and_spark_killed_at_random_times(tmp_path: Path) -> None:
    shop = make_shop(tmp_path, None)
    site = load_site(ProjectPaths(tmp_path))
    choose = random.Random(20260901)
    try:
        ensure_server(site)
        shop.floe("run", "totals", "--date", str(TUESDAY))
        started = time.monotonic()
        shop.floe("run", "totals", "--date", str(TUESDAY))
        needed = time.monotonic() - started
        known: set[str] = set()
        for round_ in range(ROUNDS):
            server = ensure_server(site)
            process = subprocess.Popen(
                [str(FLOE), "run", "totals", "--date", str(TUESDAY)],
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(choose.uniform(0.2, 1.1) * needed)
            victim = process.pid if round_ % 2 else server.pid
            if victim is not None and (process.poll() is None or victim == server.pid):
                os.kill(victim, signal.SIGKILL)
            process.wait()
            with shop.open() as project:
                check_versions_are_whole(project, known)
                repair(project.workspace, project.sparks)
                check_versions_are_whole(project, known)
                check_everything_is_repaired(project)
        # At the end, read all versions once more.
        with shop.open() as project:
            check_versions_are_whole(project)
        shop.floe("run", "totals", "--date", str(TUESDAY))
        assert server_status(site).state == "running"
    finally:
        stop_server(site)
