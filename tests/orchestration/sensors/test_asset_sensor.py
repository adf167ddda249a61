from collections.abc import Iterator
from pathlib import Path

import pytest

from floe.spec.findings import SpecError
from floe.spec.identity import BUSINESS_DATE_TAG
from tests.orchestration.sensors.shop import Daemon, build_shop, make_shop, open_shop, restarted

pytestmark = pytest.mark.slow

ANY = "watch: {type: asset_sensor, job: make_revenue, watched_assets: [bronze.orders]}"
TWO = "[bronze.orders, bronze/customers]"
ALL = f"watch: {{type: asset_sensor, job: make_revenue, when: all, watched_assets: {TWO}}}"
DAYS = "[daily.orders, daily.customers]"
DAILY = f"watch: {{type: asset_sensor, job: make_daily, watched_assets: {DAYS}}}"
DAILY_ALL = f"watch: {{type: asset_sensor, job: make_daily, when: all, watched_assets: {DAYS}}}"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with open_shop(tmp_path, ANY) as daemon:
        yield daemon


def test_a_materialization_of_a_watched_asset_starts_the_job(daemon: Daemon) -> None:
    assert daemon.tick("watch") == []
    daemon.run("make_orders")
    [run] = daemon.tick("watch")
    assert (run.job_name, run.is_success) == ("make_revenue", True)
    assert daemon.tick("watch") == []


def test_each_new_materialization_starts_its_own_run(daemon: Daemon) -> None:
    daemon.tick("watch")
    for _ in range(3):
        daemon.run("make_orders")
    assert len(daemon.tick("watch")) == 3


def test_unwatched_assets_start_nothing(daemon: Daemon) -> None:
    daemon.tick("watch")
    daemon.report("bronze.customers")
    assert daemon.tick("watch") == []


def test_the_first_evaluation_takes_only_the_newest_materialization(daemon: Daemon) -> None:
    for _ in range(3):
        daemon.run("make_orders")
    assert len(daemon.look("watch").requests) == 1


def test_an_external_materialization_counts_like_one_of_a_run(daemon: Daemon) -> None:
    daemon.tick("watch")
    daemon.report("bronze.orders")
    assert len(daemon.tick("watch")) == 1


@pytest.mark.slow
def test_a_crash_before_the_cursor_is_stored_causes_no_lost_or_duplicate_run(
    tmp_path: Path,
) -> None:
    with open_shop(tmp_path, ANY, on_disk=True) as daemon:
        daemon.tick("watch")
        daemon.run("make_orders")
        assert len(daemon.tick("watch", dies=True)) == 1
        daemon.run("make_orders")
        after = restarted(daemon, tmp_path)
        assert len(after.look("watch", dies=True).requests) == 2
        assert len(after.tick("watch")) == 1
        assert after.tick("watch") == []


def test_materializations_while_the_daemon_is_down_are_not_lost(
    daemon: Daemon, tmp_path: Path
) -> None:
    daemon.tick("watch")
    daemon.run("make_orders")
    daemon.run("make_orders")
    assert len(restarted(daemon, tmp_path).tick("watch")) == 2


def test_all_waits_until_every_watched_asset_is_new(tmp_path: Path) -> None:
    with open_shop(tmp_path, ALL) as daemon:
        daemon.report("bronze.orders")
        daemon.report("bronze.orders")
        assert (
            daemon.look("watch").skipped
            == "Waiting for a new materialization of: bronze.customers."
        )
        daemon.report("bronze.customers")
        assert len(daemon.tick("watch")) == 1
        daemon.report("bronze.customers")
        assert (
            daemon.look("watch").skipped == "Waiting for a new materialization of: bronze.orders."
        )


def test_all_remembers_new_assets_across_a_restart(tmp_path: Path) -> None:
    with open_shop(tmp_path, ALL) as daemon:
        daemon.report("bronze.orders")
        daemon.tick("watch")
        after = restarted(daemon, tmp_path)
        after.report("bronze.customers")
        assert len(after.tick("watch", dies=True)) == 1
        again = restarted(after, tmp_path)
        assert again.tick("watch") == []
        assert again.tick("watch") == []


def test_the_partition_is_used_by_a_job_that_has_it(tmp_path: Path) -> None:
    with open_shop(tmp_path, DAILY) as daemon:
        daemon.tick("watch")
        daemon.report("daily.orders", "2026-03-01")
        daemon.report("daily.orders", "2026-03-02")
        runs = daemon.tick("watch")
        assert [run.tags["dagster/partition"] for run in runs] == ["2026-03-01", "2026-03-02"]


def test_all_applies_to_each_partition_separately(tmp_path: Path) -> None:
    with open_shop(tmp_path, DAILY_ALL) as daemon:
        daemon.tick("watch")
        daemon.report("daily.orders", "2026-03-01")
        daemon.report("daily.customers", "2026-03-02")
        assert daemon.tick("watch") == []
        daemon.report("daily.orders", "2026-03-02")
        assert daemon.look("watch").partitions == ["2026-03-02"]
        daemon.report("daily.customers", "2026-03-01")
        assert daemon.look("watch").partitions == ["2026-03-01"]


def test_an_unpartitioned_asset_counts_for_every_waiting_partition(tmp_path: Path) -> None:
    watched = "[daily.orders, bronze.orders]"
    sensor = f"watch: {{type: asset_sensor, job: make_daily, when: all, watched_assets: {watched}}}"
    with open_shop(tmp_path, sensor) as daemon:
        daemon.tick("watch")
        daemon.report("daily.orders", "2026-03-01")
        daemon.report("daily.orders", "2026-03-02")
        daemon.report("bronze.orders")
        assert daemon.look("watch").partitions == ["2026-03-01", "2026-03-02"]
        daemon.report("daily.orders", "2026-03-03")
        assert daemon.look("watch").requests == []


def test_a_job_without_partitions_gets_the_business_date(tmp_path: Path) -> None:
    watched = "[daily.orders]"
    sensor = f"watch: {{type: asset_sensor, job: make_revenue, watched_assets: {watched}}}"
    with open_shop(tmp_path, sensor) as daemon:
        daemon.report("daily.orders", "2026-03-01")
        [request] = daemon.look("watch").requests
        assert request.tags[BUSINESS_DATE_TAG] == "2026-03-01"
        assert request.partition_key is None


def test_a_job_that_materializes_its_watched_assets_does_not_start_itself(tmp_path: Path) -> None:
    sensor = "watch: {type: asset_sensor, job: make_all, watched_assets: [bronze.orders]}"
    with open_shop(tmp_path, sensor) as daemon:
        daemon.report("bronze.orders")
        assert len(daemon.tick("watch")) == 1
        assert daemon.tick("watch") == []
        daemon.run("make_orders")
        assert len(daemon.tick("watch")) == 1


def test_two_sensors_that_trigger_each_other_stop(tmp_path: Path) -> None:
    sensors = """
    one: {type: asset_sensor, job: make_revenue, watched_assets: [bronze.orders]}
    two: {type: asset_sensor, job: make_orders, watched_assets: [gold.revenue]}
    """
    with open_shop(tmp_path, sensors.replace("\n    ", "\n")) as daemon:
        daemon.tick("one")
        daemon.tick("two")
        daemon.run("make_orders")
        started = [len(daemon.tick(name)) for _ in range(4) for name in ("one", "two")]
        assert started == [1, 1, 0, 0, 0, 0, 0, 0]


def test_an_unknown_asset_is_rejected_at_load_with_the_nearest_name(
    tmp_path: Path,
) -> None:
    watched = "[bronze/orders, bronze.custmers]"
    sensor = f"watch: {{type: asset_sensor, job: make_revenue, watched_assets: {watched}}}"
    folder = make_shop(tmp_path, sensor)
    with pytest.raises(SpecError) as caught:
        build_shop(folder)
    [finding] = caught.value.findings
    assert finding.key == "orchestration.sensors.watch.watched_assets[1]"
    assert (finding.file, finding.message) == (
        "floe.yaml",
        "there is no asset 'bronze.custmers'",
    )
    assert finding.hint == "Did you mean 'bronze.customers'?"
