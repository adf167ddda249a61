"""Runs begin in copies of a process that has the project loaded; what can go wrong is seen."""

import inspect
import os
import signal
import stat

import pytest
from dagster import DagsterInvariantViolationError, DagsterRun, DagsterRunStatus
from dagster._cli.api import _execute_run_command_body
from dagster._core.launcher import LaunchRunContext, WorkerStatus

from floe.execution.spark.processes import start_of, wait_until
from floe.orchestration.launcher import zygote
from tests.orchestration.launcher.conftest import DEFINITIONS, MODULE, Night

# Each starts programs of its own.
pytestmark = pytest.mark.slow


def test_a_run_is_a_copy_of_the_zygote_in_a_session_of_its_own(warm: Night) -> None:
    run = warm.launch("note")
    warm.wait(run, DagsterRunStatus.SUCCESS)
    pid, parent, session, _ = warm.noted()
    assert warm.zygote is not None
    assert (int(parent), session) == (warm.zygote.pid, pid)
    assert "Started in a warm process" in warm.messages(run)
    assert wait_until(lambda: warm.workers.all() == [], 30)


def test_only_its_owner_can_have_runs_started(warm: Night) -> None:
    assert stat.S_IMODE(warm.socket.stat().st_mode) == 0o600


def test_a_run_whose_process_dies_is_marked_so(warm: Night) -> None:
    run = warm.launch("die")
    warm.wait(run, DagsterRunStatus.FAILURE)
    assert "ended by SIGKILL" in warm.messages(run)


def test_a_run_whose_process_ends_without_a_word_is_found_dead(warm: Night) -> None:
    run = warm.launch("leave")
    assert wait_until(lambda: warm.workers.all() == [], 60)
    assert warm.status(run) == DagsterRunStatus.STARTED
    health = warm.launcher.check_run_worker_health(run)
    assert health.status == WorkerStatus.FAILED


def test_a_run_that_is_cancelled_ends_and_says_so(warm: Night) -> None:
    run = warm.launch("wait_long")
    (pid,) = warm.noted()
    assert warm.launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    assert warm.launcher.terminate(run.run_id) is True
    warm.wait(run, DagsterRunStatus.CANCELED)
    assert wait_until(lambda: start_of(int(pid)) is None, 30)
    assert warm.launcher.terminate(run.run_id) is False


def test_a_run_that_does_not_end_is_killed(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(zygote.GRACE_VARIABLE, "1")
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
    assert warm.zygote is not None
    assert warm.noted()[1] == str(warm.zygote.pid)


def test_a_run_survives_the_zygote_and_the_next_one_can_end_it(warm: Night) -> None:
    run = warm.launch("wait_long")
    (pid,) = warm.noted()
    assert warm.zygote is not None
    warm.zygote.kill()
    warm.zygote.wait()
    assert warm.launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    warm.start()
    assert warm.launcher.terminate(run.run_id) is True
    warm.wait(run, DagsterRunStatus.CANCELED)
    assert wait_until(lambda: start_of(int(pid)) is None, 30)


def test_a_run_that_died_while_there_was_no_zygote_is_told_by_the_next(warm: Night) -> None:
    run = warm.launch("wait_long")
    (pid,) = warm.noted()
    assert warm.zygote is not None
    warm.zygote.kill()
    warm.zygote.wait()
    os.kill(int(pid), signal.SIGKILL)
    assert wait_until(lambda: start_of(int(pid)) is None, 30)
    assert warm.launcher.check_run_worker_health(run).status == WorkerStatus.FAILED
    warm.start()
    warm.wait(run, DagsterRunStatus.FAILURE)
    assert "The process of the run is gone" in warm.messages(run)


def test_stopping_the_zygote_stops_its_runs(warm: Night) -> None:
    run = warm.launch("wait_long")
    (pid,) = warm.noted()
    assert warm.zygote is not None
    warm.zygote.terminate()
    assert warm.zygote.wait(60) == 0
    assert start_of(int(pid)) is None
    assert warm.status(run) == DagsterRunStatus.FAILURE
    assert warm.workers.all() == []


def test_without_a_zygote_the_code_server_launches_the_run(night: Night) -> None:
    run = night.create("note")
    # That it was asked shows in what it lacks here.
    with pytest.raises(DagsterInvariantViolationError, match="requires a workspace"):
        night.launcher.launch_run(_context(run))
    assert "not by a warm process: none is there" in night.messages(run)


def test_a_project_that_does_not_load_is_launched_by_the_code_server(night: Night) -> None:
    (night.root / f"{MODULE}.py").write_text("raise RuntimeError('broken on purpose')\n")
    night.start()
    run = night.create("note")
    with pytest.raises(DagsterInvariantViolationError, match="requires a workspace"):
        night.launcher.launch_run(_context(run))
    assert "the project does not load: RuntimeError: broken on purpose" in night.messages(run)
    (night.root / f"{MODULE}.py").write_text(DEFINITIONS)
    night.wait(night.launch("note"), DagsterRunStatus.SUCCESS)


def test_a_zygote_with_a_second_thread_makes_no_copies(night: Night) -> None:
    threaded = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
    (night.root / f"{MODULE}.py").write_text(threaded + DEFINITIONS)
    night.start()
    run = night.create("note")
    with pytest.raises(DagsterInvariantViolationError, match="requires a workspace"):
        night.launcher.launch_run(_context(run))
    assert "has started 1 threads" in night.messages(run)


def test_a_run_that_was_given_up_meanwhile_does_not_begin(warm: Night) -> None:
    run = warm.create("note")
    warm.instance.report_run_failed(run)
    warm.launcher.launch_run(_context(run))
    assert wait_until(lambda: warm.workers.all() == [], 60)
    assert not (warm.root / "noted").exists()


def test_dagsters_own_way_to_execute_a_run_is_still_what_we_call() -> None:
    called = inspect.signature(_execute_run_command_body)
    assert list(called.parameters) == [
        "run_id",
        "instance",
        "write_stream_fn",
        "set_exit_code_on_failure",
    ]


def _context(run: DagsterRun) -> LaunchRunContext:
    return LaunchRunContext(run, None)
