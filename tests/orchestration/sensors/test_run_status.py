import logging
from pathlib import Path

import pytest

from floe.spec.findings import SpecError
from tests.notify.servers import web_server
from tests.orchestration.sensors.shop import build_shop, make_shop, open_shop, restarted

pytestmark = pytest.mark.slow

NOTIFY = "watch: {type: run_status, status: FAILURE, notify: [log]}"
START = "watch: {type: run_status, status: SUCCESS, watched_jobs: [make_orders], job: make_revenue}"


def test_a_notification_of_a_failed_run_has_job_run_error_and_link(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_shop(tmp_path, NOTIFY) as daemon:
        daemon.tick("watch")
        failed = daemon.run("make_broken")
        daemon.run("make_orders")
        caplog.clear()
        look = daemon.look("watch")
        assert look.skipped == "Sent notifications for 1 runs that failed."
        assert daemon.look("watch").skipped == "No watched run failed."
    [record] = [item for item in caplog.records if item.name == "floe.notify"]
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "The job make_broken failed\n"
        "Job: make_broken\n"
        f"Run: {failed.run_id}\n"
        "Error: ValueError: no rates for 2026-09-01\n\n"
        f"Dagster: http://127.0.0.1:3000/runs/{failed.run_id}"
    )


def test_a_failing_channel_is_reported_and_the_others_get_the_message(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with web_server(403) as broken, web_server() as hook:
        platform = f"""
        notifications:
          broken: {{type: webhook, url: "secret://env/BROKEN"}}
          ops: {{type: webhook, url: "{hook.url}"}}
        """
        declared = NOTIFY.replace("[log]", "[broken, ops]")
        environ = {"BROKEN": f"{broken.url}/hunter2"}
        with open_shop(tmp_path, declared, platform=platform, environ=environ) as daemon:
            daemon.tick("watch")
            daemon.run("make_broken")
            look = daemon.look("watch")
    failure = "'broken': The webhook: it responded 403 Forbidden."
    assert look.skipped == f"Sent notifications for 1 runs that failed. Failed channels: {failure}"
    assert [posted.body["title"] for posted in hook.posted] == ["The job make_broken failed"]
    logged = capfd.readouterr().err
    assert f"failed: {failure}" in logged
    assert "hunter2" not in logged


def test_a_watched_job_that_succeeds_starts_the_job(tmp_path: Path) -> None:
    with open_shop(tmp_path, START) as daemon:
        daemon.tick("watch")
        daemon.run("make_all")
        daemon.run("make_broken")
        daemon.run("make_orders")
        daemon.run("make_orders")
        assert [run.job_name for run in daemon.tick("watch")] == ["make_revenue"] * 2
        assert daemon.tick("watch") == []


def test_a_run_that_the_sensor_triggered_does_not_trigger_it(tmp_path: Path) -> None:
    declared = "watch: {type: run_status, status: SUCCESS, job: make_revenue}"
    with open_shop(tmp_path, declared) as daemon:
        daemon.tick("watch")
        daemon.run("make_orders")
        assert [len(daemon.tick("watch")) for _ in range(3)] == [1, 0, 0]


def test_two_sensors_that_trigger_each_other_stop(tmp_path: Path) -> None:
    declared = """
one: {type: run_status, status: SUCCESS, watched_jobs: [make_orders], job: make_revenue}
two: {type: run_status, status: SUCCESS, watched_jobs: [make_revenue], job: make_orders}
    """
    with open_shop(tmp_path, declared) as daemon:
        daemon.tick("one")
        daemon.tick("two")
        daemon.run("make_orders")
        started = [len(daemon.tick(name)) for _ in range(3) for name in ("one", "two")]
        assert started == [1, 1, 0, 0, 0, 0]


def test_a_start_of_a_run_is_notified_with_status_started(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_shop(tmp_path, NOTIFY.replace("FAILURE", "STARTED")) as daemon:
        daemon.tick("watch")
        daemon.run("make_orders")
        daemon.look("watch")
    assert "The job make_orders started" in caplog.text


def test_the_partition_of_the_watched_run_is_used(tmp_path: Path) -> None:
    declared = "watch: {type: run_status, status: SUCCESS, watched_jobs: [make_daily], job: JOB}"
    with open_shop(tmp_path, declared.replace("JOB", "make_daily")) as daemon:
        daemon.tick("watch")
        daemon.run("make_daily", partition_key="2026-03-01")
        assert daemon.look("watch").partitions == ["2026-03-01"]


def test_runs_before_the_first_evaluation_are_ignored(tmp_path: Path) -> None:
    with open_shop(tmp_path, START) as daemon:
        daemon.run("make_orders")
        skipped = daemon.look("watch").skipped
        assert skipped == "First evaluation: watching for runs that succeeded from now on."
        assert daemon.tick("watch") == []


@pytest.mark.slow
def test_a_restart_causes_no_lost_or_duplicate_run(tmp_path: Path) -> None:
    with open_shop(tmp_path, START, on_disk=True) as daemon:
        daemon.run("make_orders")
        daemon.tick("watch")
        daemon.run("make_orders")
        assert len(daemon.tick("watch", dies=True)) == 1
        daemon.run("make_orders")
        after = restarted(daemon, tmp_path)
        assert len(after.tick("watch")) == 1
        assert after.tick("watch") == []


def test_an_unknown_channel_is_rejected_at_load(tmp_path: Path) -> None:
    folder = make_shop(tmp_path, NOTIFY.replace("[log]", "[log, lgo]"))
    with pytest.raises(SpecError) as caught:
        build_shop(folder)
    [finding] = caught.value.findings
    assert finding.key == "orchestration.sensors.watch.notify[1]"
    assert "no channel named 'lgo'" in finding.message
    assert finding.hint == "Did you mean 'log'?"


def test_an_unknown_watched_job_is_rejected_at_load(tmp_path: Path) -> None:
    folder = make_shop(tmp_path, START.replace("make_orders]", "make_order]"))
    with pytest.raises(SpecError) as caught:
        build_shop(folder)
    assert "sensors.watch.watched_jobs[0]: no job named 'make_order'" in str(caught.value)
