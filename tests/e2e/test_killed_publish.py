"""kill -9 between any two steps of a publish: nothing half is ever read, and the next start mends.

The long form kills at random moments too, floe and Spark in turn.
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
from floe.execution.resuming import repair
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
# Seconds that a row takes of which Spark must call Java to sleep.
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
    """A project whose Spark server is its own, to be killed."""
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
    """Run a command in this process, which is quicker; what it raises is in its result."""
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


def check_nothing_half_is_read(project: OpenShop, known: set[str] | None = None) -> None:
    """Every version that the catalog calls READY is whole, and so is what the stable name shows.

    Those that are known to be whole are not read again: of a hundred rounds that would be most.
    """
    known = set() if known is None else known
    for tag, state in project.states("risk.totals").items():
        if state in ("READY", "SUPERSEDED") and tag not in known:
            assert project.rows("risk.totals", tag) == RIGHT
            known.add(tag)
    with project.sparks.session() as spark:
        if spark.catalog.tableExists("lake.risk.totals"):
            assert project.main("risk.totals") in ([], RIGHT)


def check_all_is_mended(project: OpenShop) -> None:
    """No version is unfinished, no run open, no branch left."""
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
        check_nothing_half_is_read(project)
    resume(shop, run_id)
    with shop.open() as project:
        check_nothing_half_is_read(project)
        check_all_is_mended(project)
        states = list(project.states("risk.totals").values())
        assert states.count("READY") == 1
        # What was announced was whole: it is finished, not done again.
        expected = 1 if POINTS.index(point) >= POINTS.index("announced") else 2
        assert len(states) == expected
    # Whichever run had to tell it: where the version comes from is known.
    told = floe_here(shop, "lineage", "risk.totals", "--columns", "--json").output
    assert "raw.trades" in told


def test_the_next_start_repairs_before_it_runs(shop: Workshop) -> None:
    shop.floe("run", "totals", "--date", str(TUESDAY), fault="written", check=False)
    done = shop.floe("run", "totals", "--date", str(TUESDAY))
    assert "Repaired risk.totals 2026-09-01.1: ABANDONED" in done.stdout
    with shop.open() as project:
        check_all_is_mended(project)
        assert project.states("risk.totals") == {
            "2026-09-01.1": "ABANDONED",
            "2026-09-01.2": "READY",
        }


def test_what_spark_still_writes_for_a_killed_floe_does_not_come_back(shop: Workshop) -> None:
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
        # By now Spark would have written the branch that the repair has dropped.
        time.sleep(SLOW)
        check_all_is_mended(project)


@pytest.mark.parametrize("point", POINTS)
def test_spark_killed_between_two_steps_of_a_publish(
    own_shop: Workshop, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_totals(own_shop, attempts=1)
    with own_shop.open() as project:
        before = project.states("risk.totals")
    done = run_and_kill_spark(own_shop, point, monkeypatch)
    # From there on Spark is not needed any more.
    published = POINTS.index(point) >= POINTS.index("published")
    assert (done.exit_code == 0) == published, done.output
    with own_shop.open() as project:
        run_id = last_run(project).run_uuid
        check_nothing_half_is_read(project)
    resume(own_shop, run_id)
    with own_shop.open() as project:
        check_nothing_half_is_read(project)
        check_all_is_mended(project)
        states = [now for tag, now in project.states("risk.totals").items() if tag not in before]
        announced = POINTS.index(point) >= POINTS.index("announced")
        assert states == (["READY"] if announced else ["ABANDONED", "READY"])


@pytest.mark.parametrize("point", ["written", "announced"])
def test_a_run_whose_spark_is_killed_starts_another_and_goes_on(
    own_shop: Workshop, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_totals(own_shop, attempts=3)
    done = run_and_kill_spark(own_shop, point, monkeypatch)
    assert json.loads(done.stdout)["attempts"] == 2
    with own_shop.open() as project:
        repair(project.workspace, project.sparks)
        check_nothing_half_is_read(project)
        check_all_is_mended(project)


@pytest.mark.skipif(not ROUNDS, reason="the long form: FLOE_SOAK_ROUNDS says how many rounds")
@pytest.mark.timeout(0)
def test_floe_and_spark_killed_at_random_moments(tmp_path: Path) -> None:
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
        for number in range(ROUNDS):
            server = ensure_server(site)
            process = subprocess.Popen(
                [str(FLOE), "run", "totals", "--date", str(TUESDAY)],
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(choose.uniform(0.2, 1.1) * needed)
            victim = process.pid if number % 2 else server.pid
            if victim is not None and (process.poll() is None or victim == server.pid):
                os.kill(victim, signal.SIGKILL)
            process.wait()
            with shop.open() as project:
                check_nothing_half_is_read(project, known)
                repair(project.workspace, project.sparks)
                check_nothing_half_is_read(project, known)
                check_all_is_mended(project)
        # And once more all of them, at the end.
        with shop.open() as project:
            check_nothing_half_is_read(project)
        shop.floe("run", "totals", "--date", str(TUESDAY))
        assert server_status(site).state == "running"
    finally:
        stop_server(site)
