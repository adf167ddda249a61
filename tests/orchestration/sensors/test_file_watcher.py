import os
from datetime import UTC, datetime
from pathlib import Path

import fsspec  # type: ignore[import-untyped]
import pytest
from dagster import DefaultSensorStatus, SensorDefinition

from floe.orchestration.sensors import file_watcher
from floe.orchestration.sensors.folders import LocalFolder
from floe.spec.findings import SpecError
from floe.spec.identity import BUSINESS_DATE_TAG
from tests.orchestration.sensors.shop import build_shop, make_shop, open_shop, restarted

FRESH = 'watch: {type: file_watcher, job: make_revenue, path: landing, pattern: "*.csv"}'
CSV = FRESH.replace("}", ", existing: process}")


def dated(job: str) -> str:
    pattern = r"'orders_(?P<date>\d{8})\.csv'"
    return (
        f"watch: {{type: file_watcher, job: {job}, path: landing, pattern_type: regex, "
        f"pattern: {pattern}, existing: process}}"
    )


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def no_recheck(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the second listing to the next evaluation, as for remote folders."""
    monkeypatch.setattr(LocalFolder, "recheck_seconds", None)


def test_a_local_file_that_does_not_change_starts_its_run_in_one_evaluation(
    tmp_path: Path, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = landing / "growing.csv"
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        growing.write_text("half and half")

    monkeypatch.setattr(LocalFolder, "recheck_seconds", 2.0)
    monkeypatch.setattr("floe.orchestration.sensors.file_watcher.time.sleep", pause)
    growing.write_text("half")
    (landing / "orders.csv").write_text("1")
    with open_shop(tmp_path, CSV) as daemon:
        [whole] = daemon.tick("watch")
        assert whole.tags["floe/file"] == str(landing / "orders.csv")
        [grown] = daemon.tick("watch")
        assert grown.tags["floe/file"] == str(growing)
        assert daemon.tick("watch") == []
    # Without new files there is no pause.
    assert paused == [2.0]


def test_a_matching_file_starts_the_job_once_it_is_complete(tmp_path: Path, landing: Path) -> None:
    with open_shop(tmp_path, CSV) as daemon:
        assert daemon.tick("watch") == []
        (landing / "orders.csv").write_text("half")
        assert daemon.tick("watch") == []
        (landing / "orders.csv").write_text("half and half")
        assert daemon.tick("watch") == []
        [run] = daemon.tick("watch")
        assert (run.job_name, run.is_success) == ("make_revenue", True)
        assert run.tags["floe/file"] == str(landing / "orders.csv")
        assert daemon.tick("watch") == []


def test_the_first_evaluation_starts_nothing_for_existing_files(
    tmp_path: Path, landing: Path
) -> None:
    (landing / "old.csv").write_text("1")
    (landing / "half.csv").write_text("ha")
    with open_shop(tmp_path, FRESH) as daemon:
        first = daemon.look("watch")
        assert first.requests == []
        assert first.skipped == (
            "First evaluation: ignored 2 existing files in landing. "
            "Use `existing: process` to start a run for each of them."
        )
        assert [daemon.tick("watch") for _ in range(2)] == [[], []]
        (landing / "new.csv").write_text("1")
        (landing / "half.csv").write_text("half, and now all of it")
        assert daemon.tick("watch") == []
        started = {run.tags["floe/file"] for run in daemon.tick("watch")}
        assert started == {str(landing / "new.csv"), str(landing / "half.csv")}


@pytest.mark.slow
def test_a_file_that_arrives_while_the_daemon_is_down_starts_a_run(
    tmp_path: Path, landing: Path
) -> None:
    (landing / "old.csv").write_text("1")
    with open_shop(tmp_path, FRESH, on_disk=True) as daemon:
        assert daemon.tick("watch") == []
        (landing / "meanwhile.csv").write_text("1")
        after = restarted(daemon, tmp_path)
        assert after.tick("watch") == []
        (run,) = after.tick("watch")
        assert run.tags["floe/file"] == str(landing / "meanwhile.csv")


def test_all_files_of_a_folder_created_after_the_first_evaluation_are_new(tmp_path: Path) -> None:
    with open_shop(tmp_path, FRESH) as daemon:
        assert "cannot be read" in str(daemon.look("watch").skipped)
        daemon.tick("watch")
        (tmp_path / "landing").mkdir()
        (tmp_path / "landing" / "orders.csv").write_text("1")
        assert [len(daemon.tick("watch")) for _ in range(2)] == [0, 1]


def test_a_broken_entry_does_not_hide_other_files(tmp_path: Path, landing: Path) -> None:
    with open_shop(tmp_path, CSV) as daemon:
        daemon.tick("watch")
        (landing / "loop.csv").symlink_to("loop.csv")
        (landing / "nowhere.csv").symlink_to("nothing")
        os.mkfifo(landing / "pipe.csv")
        (landing / "orders.csv").write_text("1")
        (landing / os.fsdecode(b"Z\xfcrich.csv")).write_text("1")
        daemon.tick("watch")
        files = {run.tags["floe/file"] for run in daemon.tick("watch")}
        assert files == {str(landing / "orders.csv"), str(landing / "Z\\xfcrich.csv")}
        assert daemon.tick("watch") == []


def test_files_that_do_not_match_start_nothing(tmp_path: Path, landing: Path) -> None:
    for name in ("orders.csv.part", "orders.txt", ".orders.csv"):
        (landing / name).write_text("1")
    with open_shop(tmp_path, CSV) as daemon:
        daemon.tick("watch")
        look = daemon.look("watch")
        assert look.requests == []
        assert look.skipped == "No new files in landing (0 match)."


def test_runs_start_in_the_order_of_file_names(tmp_path: Path, landing: Path) -> None:
    for name in ("c.csv", "a.csv", "b.csv"):
        (landing / name).write_text("1")
    with open_shop(tmp_path, CSV) as daemon:
        daemon.tick("watch")
        files = [request.tags["floe/file"] for request in daemon.look("watch").requests]
        assert [Path(file).name for file in files] == ["a.csv", "b.csv", "c.csv"]


def test_a_replaced_file_counts_again_but_a_restored_one_does_not(
    tmp_path: Path, landing: Path
) -> None:
    file = landing / "orders.csv"
    file.write_text("one")
    before = file.stat()
    with open_shop(tmp_path, CSV) as daemon:
        daemon.tick("watch")
        assert len(daemon.tick("watch")) == 1
        file.write_text("two")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000_000))
        assert [len(daemon.tick("watch")) for _ in range(3)] == [0, 1, 0]
        file.unlink()
        assert daemon.tick("watch") == []
        file.write_text("one")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert [len(daemon.tick("watch")) for _ in range(3)] == [0, 0, 0]


@pytest.mark.slow
def test_a_crash_of_the_daemon_causes_no_lost_or_duplicate_run(
    tmp_path: Path, landing: Path
) -> None:
    (landing / "a.csv").write_text("1")
    with open_shop(tmp_path, CSV, on_disk=True) as daemon:
        daemon.tick("watch")
        assert len(daemon.tick("watch", dies=True)) == 1
        (landing / "b.csv").write_text("1")
        after = restarted(daemon, tmp_path)
        assert len(after.look("watch", dies=True).requests) == 1
        assert after.tick("watch") == []
        assert len(after.tick("watch")) == 1
        forgetful = restarted(after, tmp_path)
        forgetful.cursors["watch"] = "not what was kept"
        assert [len(forgetful.tick("watch")) for _ in range(3)] == [0, 0, 0]


def test_an_unreachable_folder_is_reported_and_tried_again(tmp_path: Path) -> None:
    with open_shop(tmp_path, CSV) as daemon:
        look = daemon.look("watch")
        assert look.requests == []
        assert look.skipped == (
            "landing cannot be read (No such file or directory). Next attempt in 4 seconds."
        )
        (tmp_path / "landing").mkdir()
        (tmp_path / "landing" / "orders.csv").write_text("1")
        assert [len(daemon.tick("watch")) for _ in range(2)] == [0, 1]


def test_handled_files_are_remembered_while_the_folder_is_missing(
    tmp_path: Path, landing: Path
) -> None:
    (landing / "orders.csv").write_text("1")
    with open_shop(tmp_path, CSV) as daemon:
        daemon.tick("watch")
        assert len(daemon.tick("watch")) == 1
        landing.rename(tmp_path / "away")
        kept = daemon.cursors["watch"]
        daemon.tick("watch")
        assert daemon.cursors["watch"] == kept
        (tmp_path / "away").rename(landing)
        assert [len(daemon.look("watch").requests) for _ in range(2)] == [0, 0]


def test_a_url_is_watched_like_a_folder(tmp_path: Path) -> None:
    files = fsspec.filesystem("memory")
    sensor = (
        "watch: {type: file_watcher, job: make_revenue, path: memory://bucket/landing, "
        'pattern: "**/*.csv", existing: process}'
    )
    with open_shop(tmp_path, sensor) as daemon:
        skipped = daemon.look("watch").skipped
        assert skipped is not None
        assert skipped.startswith("memory://bucket/landing cannot be read")
        files.pipe("/bucket/landing/2026/orders.csv", b"1")
        files.pipe("/bucket/landing/2026/orders.txt", b"1")
        assert daemon.tick("watch") == []
        [run] = daemon.tick("watch")
        assert run.tags["floe/file"] == "memory:///bucket/landing/2026/orders.csv"
        assert daemon.tick("watch") == []


def test_the_date_in_a_file_name_is_the_partition(tmp_path: Path, landing: Path) -> None:
    (landing / "orders_20260302.csv").write_text("1")
    (landing / "orders_20260301.csv").write_text("1")
    with open_shop(tmp_path, dated("make_daily")) as daemon:
        daemon.tick("watch")
        runs = daemon.tick("watch")
        assert [run.tags["dagster/partition"] for run in runs] == ["2026-03-01", "2026-03-02"]


def test_a_file_for_a_date_without_partition_waits(tmp_path: Path, landing: Path) -> None:
    (landing / "orders_20251231.csv").write_text("1")
    (landing / "orders_20260301.csv").write_text("1")
    with open_shop(tmp_path, dated("make_daily")) as daemon:
        daemon.tick("watch")
        assert daemon.look("watch").partitions == ["2026-03-01"]
        skipped = daemon.look("watch").skipped
        assert skipped is not None
        assert skipped.startswith("1 new files in landing start runs")


def test_the_date_in_a_file_name_is_the_business_date_of_an_unpartitioned_job(
    tmp_path: Path, landing: Path
) -> None:
    (landing / "orders_20260301.csv").write_text("1")
    with open_shop(tmp_path, dated("make_revenue")) as daemon:
        daemon.tick("watch")
        [request] = daemon.look("watch").requests
        assert request.tags[BUSINESS_DATE_TAG] == "2026-03-01"


def test_a_file_name_without_date_starts_the_newest_partition(
    tmp_path: Path, landing: Path
) -> None:
    (landing / "orders.csv").write_text("1")
    with open_shop(tmp_path, CSV.replace("make_revenue", "make_daily")) as daemon:
        daemon.tick("watch")
        today = datetime.now(UTC).date().isoformat()
        [partition] = daemon.look("watch").partitions
        assert partition is not None
        assert partition >= today


def test_many_files_are_spread_over_several_evaluations(
    tmp_path: Path, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_watcher, "MOST_AT_ONCE", 300)
    for index in range(700):
        (landing / f"{index:04}.csv").write_text("1")
    with open_shop(tmp_path, CSV) as daemon:
        looks = [daemon.look("watch").requests for _ in range(5)]
    assert [len(look) for look in looks] == [0, 300, 300, 100, 0]
    assert len({request.run_key for look in looks for request in look}) == 700


def sensor_of(folder: Path, declared: str) -> SensorDefinition:
    [sensor] = build_shop(make_shop(folder, declared)).sensors
    assert isinstance(sensor, SensorDefinition)
    return sensor


def test_interval_and_enabled_come_from_floe_yaml(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    on = sensor_of(first, CSV)
    switched = 'poll_interval_seconds: 5, enabled: "${WATCHING:false}", path:'
    declared = CSV.replace("path:", switched)
    off = sensor_of(second, declared)
    assert (on.minimum_interval_seconds, on.default_status) == (4, DefaultSensorStatus.RUNNING)
    assert (off.minimum_interval_seconds, off.default_status) == (5, DefaultSensorStatus.STOPPED)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ('" "', "is empty. Set the folder to watch"),
        ("floe.yaml", "'floe.yaml' is a file, not a folder"),
        ("memry://in", "unknown protocol 'memry://'. Did you mean 'memory'?"),
        ("abfs://in", "'abfs://' needs a package that is not installed. Install adlfs"),
    ],
)
def test_a_path_that_can_never_be_read_is_rejected_at_load(
    tmp_path: Path, path: str, says: str
) -> None:
    folder = make_shop(tmp_path, CSV.replace("path: landing", f"path: {path}"))
    with pytest.raises(SpecError) as caught:
        build_shop(folder)
    assert "orchestration.sensors.watch.path: " in str(caught.value)
    assert says in str(caught.value)
