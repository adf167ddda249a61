"""`floe register` killed at any time leaves a catalog that the next one completes."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "demo" / "credit_risk"
ROUNDS = int(os.environ.get("FLOE_SOAK_ROUNDS", "3"))


def start_register(project: Path) -> subprocess.Popen[bytes]:
    floe = Path(sys.executable).parent / "floe"
    return subprocess.Popen([floe, "register"], cwd=project, stdout=subprocess.DEVNULL)


def contents(project: Path) -> dict[str, list[tuple[object, ...]]]:
    """The contents of the catalog, without ids and times."""
    with sqlite3.connect(project / ".floe" / "catalog.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return {
            "datasets": connection.execute(
                "SELECT full_name, status, owner_team, declaration_json FROM dataset ORDER BY 1"
            ).fetchall(),
            "processes": connection.execute(
                "SELECT process_key, status, declaration_json FROM process ORDER BY 1"
            ).fetchall(),
            "edges": connection.execute(
                "SELECT edge_role, count(*) FROM lineage_edge GROUP BY 1 ORDER BY 1"
            ).fetchall(),
            "changes": connection.execute("SELECT kind FROM change ORDER BY 1").fetchall(),
        }


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_register_killed_at_any_time_is_completed_by_the_next(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(DEMO, whole, ignore=shutil.ignore_patterns(".floe"))
    started = time.monotonic()
    assert start_register(whole).wait() == 0
    needed = time.monotonic() - started
    for round_ in range(ROUNDS):
        project = tmp_path / f"killed_{round_}"
        shutil.copytree(DEMO, project, ignore=shutil.ignore_patterns(".floe"))
        process = start_register(project)
        time.sleep(random.uniform(0.2, 1.0) * needed)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert start_register(project).wait() == 0
        assert contents(project) == contents(whole)
