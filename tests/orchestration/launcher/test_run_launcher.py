"""Runs are forks of the warm process, and their failures are reported."""

import os
import signal
import stat

import pytest
from dagster import DagsterInvariantViolationError, DagsterRun, DagsterRunStatus
from dagster._core.launcher import LaunchRunContext, WorkerStatus

from floe.execution.os_processes import start_of, wait_until
from floe.orchestration.launcher import warm_process
from tests.orchestration.launcher.conftest import DEFINITIONS, MODULE, Night

# Each test starts processes.
pytestmark = pytest.mark.slow


def test_a_run_is_a_fork_of_the_warm_process_in_its_own_session(warm: Night) -> None:
    run = warm.launch("note")
    warm.wait(run, DagsterRunStatus.SUCCESS)
    pid, parent, session, _ = warm.noted()
    assert warm.process is not None
    assert (int(parent), session) == (warm.process.pid, pid)
    assert "Started in a warm process" in warm.messages(run)
    assert wait_until(lambda: warm.workers.all() == [], 30)


def test_only_the_owner_can_start_runs(warm: Night) -> None:
    assert stat.S_IMODE(warm.socket.stat().st_mode) == 0o600


def test_a_run_whose_process_is_killed_fails(warm: Night) -> None:
    run = warm.launch("die")
    warm.wait(run, DagsterRunStatus.FAILURE)
    assert "was killed by SIGKILL" in warm.messages(run)


def test_a_run_whose_process_exits_silently_fails(warm: Night) -> None:
    run = warm.launch("leave")
    assert wait_until(lambda: warm.workers.all() == [], 60)
    assert warm.status(run) == DagsterRunStatus.STARTED
    health = warm.launcher.check_run_worker_health(run)
    assert health.status == WorkerStatus.FAILED


def test_a_terminated_run_is_canceled(warm: Night) -> None:
    run = warm.launch("wait_long")
    (pid,) = warm.noted()
    assert warm.launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    assert warm.launcher.terminate(run.run_id) is True
    warm.wait(run, DagsterRunStatus.CANCELED)
    assert wait_until(lambda: start_of(int(pid)) is None, 30)
    assert warm.launcher.terminate(run.run_id) is False


def test_a_run_that_ignores_termination_is_killed(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(warm_process.GRACE_VARIABLE, "1")
    night.start()
    run = night.launch("be_deaf")
    (pid,) = night.noted()
    night.launcher.terminate(run.run_id)
    night.wait(run, DagsterRunStatus.CANCELED)
    assert start_of(int(pid)) is None


def test_changed_code_is_loaded_before_the_next_run(warm: Night) -> None:
    warm.wait(warm.launch("note"), DagsterRunStatus.SUCCESS)
    assert warm.noted()[-1] == "FIRST"
    (warm.root / f"{MODULE}.py").write_text(DEFINITIONS.replace("FIRST", "SECOND"))
    run = warm.launch("note")
    warm.wait(run, DagsterRunStatus.SUCCESS)
    assert warm.noted()[-1] == "SECOND"
    assert warm.process is not None
    assert warm.noted()[1] == str(warm.process.pid)


def test_a_run_survives_the_warm_process_and_the_next_one_can_terminate_it(warm: Night) -> None:
    run = warm.launch("wait_long")
    (pid,) = warm.noted()
    assert warm.process is not None
    warm.process.kill()
    warm.process.wait()
    assert warm.launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    warm.start()
    assert warm.launcher.terminate(run.run_id) is True
    warm.wait(run, DagsterRunStatus.CANCELED)
    assert wait_until(lambda: start_of(int(pid)) is None, 30)


def test_the_next_warm_process_reports_runs_that_died_in_between(warm: Night) -> None:
    run = warm.launch("wait_long")
    (pid,) = warm.noted()
    assert warm.process is not None
    warm.process.kill()
    warm.process.wait()
    os.kill(int(pid), signal.SIGKILL)
    assert wait_until(lambda: start_of(int(pid)) is None, 30)
    assert warm.launcher.check_run_worker_health(run).status == WorkerStatus.FAILED
    warm.start()
    warm.wait(run, DagsterRunStatus.FAILURE)
    assert "The run's process no longer exists" in warm.messages(run)


def test_stopping_the_warm_process_stops_its_runs(warm: Night) -> None:
    run = warm.launch("wait_long")
    (pid,) = warm.noted()
    assert warm.process is not None
    warm.process.terminate()
    assert warm.process.wait(60) == 0
    assert start_of(int(pid)) is None
    assert warm.status(run) == DagsterRunStatus.FAILURE
    assert warm.workers.all() == []


def test_without_a_warm_process_the_code_server_launches_the_run(night: Night) -> None:
    run = night.create("note")
    # The default launcher was called: it fails on a part that is missing here.
    with pytest.raises(DagsterInvariantViolationError, match="requires a workspace"):
        night.launcher.launch_run(_context(run))
    assert "not by a warm process: it cannot be reached" in night.messages(run)


def test_a_project_that_does_not_load_is_launched_by_the_code_server(night: Night) -> None:
    (night.root / f"{MODULE}.py").write_text("raise RuntimeError('broken on purpose')\n")
    night.start()
    run = night.create("note")
    with pytest.raises(DagsterInvariantViolationError, match="requires a workspace"):
        night.launcher.launch_run(_context(run))
    assert "the project does not load: RuntimeError: broken on purpose" in night.messages(run)
    (night.root / f"{MODULE}.py").write_text(DEFINITIONS)
    night.wait(night.launch("note"), DagsterRunStatus.SUCCESS)


def test_a_warm_process_with_a_second_thread_refuses_to_fork(night: Night) -> None:
    threaded = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
    (night.root / f"{MODULE}.py").write_text(threaded + DEFINITIONS)
    night.start()
    run = night.create("note")
    with pytest.raises(DagsterInvariantViolationError, match="requires a workspace"):
        night.launcher.launch_run(_context(run))
    assert "has started 1 threads" in night.messages(run)


def test_a_run_that_failed_before_its_start_does_not_start(warm: Night) -> None:
    run = warm.create("note")
    warm.instance.report_run_failed(run)
    warm.launcher.launch_run(_context(run))
    assert wait_until(lambda: warm.workers.all() == [], 60)
    assert not (warm.root / "noted").exists()


def _context(run: DagsterRun) -> LaunchRunContext:
    return LaunchRunContext(run, None)
