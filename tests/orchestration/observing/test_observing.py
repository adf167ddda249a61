"""Runs of Python assets and checks, observed on a real instance with Dagster's sharded log."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetExecutionContext,
    AssetKey,
    AssetSelection,
    BackfillPolicy,
    DagsterInstance,
    DailyPartitionsDefinition,
    Definitions,
    Failure,
    MaterializeResult,
    RetryPolicy,
    TableColumn,
    TableSchema,
    asset,
    asset_check,
    define_asset_job,
    multi_asset,
)
from dagster import AssetSpec as Spec

from floe.catalog.checks import page_results
from floe.catalog.processes import get_process
from floe.catalog.runs import describe_run, find_run, list_runs
from floe.catalog.version_queries import list_versions
from floe.catalog.versions import READY, reserve_version
from floe.execution.site import Site
from floe.execution.workspace import Workspace, open_workspace
from floe.orchestration.loading import Parts, load
from floe.orchestration.observing import AssetIndex, index_assets, observe
from floe.spec.identity import run_id
from tests.events.state import state_of
from tests.orchestration.projects import make_project

pytestmark = pytest.mark.slow

TUESDAY = date(2026, 9, 1)
TAGS = {"floe/business_date": "2026-09-01"}


@dataclass
class Watched:
    """Assets on an instance, and a catalog to which their runs are reported."""

    workspace: Workspace
    instance: DagsterInstance
    index: AssetIndex = field(default_factory=lambda: AssetIndex("test", "UTC"))
    cursor: str | None = None

    def run(
        self, assets: Sequence[Any], checks: Sequence[Any] = (), **more: Any
    ) -> tuple[str, bool]:
        """Materialize assets in this process; return the Dagster run and its success."""
        self.index = index_assets(Parts(assets=tuple(assets)), "test", "UTC")
        job = define_asset_job("nightly", AssetSelection.all())
        definitions = Definitions(assets=assets, asset_checks=checks, jobs=[job])
        more.setdefault("tags", TAGS)
        done = definitions.resolve_job_def("nightly").execute_in_process(
            instance=self.instance, raise_on_error=False, **more
        )
        return done.run_id, done.success

    def look(self) -> int:
        """Observe from the cursor; return the number of reported events."""
        result = observe(self.instance, self.workspace, self.index, cursor=self.cursor)
        self.cursor = result.cursor
        return len(result.reports)

    def runs(self) -> dict[str, list[str]]:
        """The status of all runs by the key of their process, the oldest first."""
        result: dict[str, list[str]] = {}
        with self.workspace.catalog.reading() as session:
            for run in reversed(list_runs(session)):
                key = get_process(session, run.process_id).process_key
                result.setdefault(key, []).append(run.status)
        return result

    def facets(self, run_uuid: str) -> Mapping[str, Any]:
        with self.workspace.catalog.reading() as session:
            run = find_run(session, run_uuid)
            assert run is not None
            facets: Any = run.facets_json
            return dict(facets)

    def versions(self, dataset: str) -> dict[str, str]:
        dataset_id = self.workspace.dataset_id(dataset)
        with self.workspace.catalog.reading() as session:
            return {
                version.version_tag: version.state for version in list_versions(session, dataset_id)
            }


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return load(make_project(tmp_path / "project")).site


def quiet_instance(home: Path) -> DagsterInstance:
    """An instance with an SQLite event log, one file per run, without telemetry."""
    silent = {"telemetry": {"enabled": False}}
    return DagsterInstance.local_temp(str(home), overrides=silent)


@pytest.fixture
def watched(site: Site, tmp_path: Path) -> Iterator[Watched]:
    home = tmp_path / "home"
    home.mkdir()
    with quiet_instance(home) as instance, open_workspace(site) as workspace:
        yield Watched(workspace, instance)


def raw(**more: Any) -> Any:
    def bronze_raw() -> None: ...

    return asset(bronze_raw, key=["bronze", "raw"], **more)


def clean(work: Callable[[], Any] = lambda: None, **more: Any) -> Any:
    def silver_clean() -> Any:
        return work()

    return asset(silver_clean, key=["silver", "clean"], deps=[["bronze", "raw"]], **more)


def test_two_assets_leave_runs_versions_and_an_edge_between_them(watched: Watched) -> None:
    dagster_run, good = watched.run([raw(), clean()])
    assert good
    watched.look()
    assert watched.runs() == {
        "dagster/test/nightly": ["SUCCESS"],
        "floe/test/bronze.raw": ["SUCCESS"],
        "floe/test/silver.clean": ["SUCCESS"],
    }
    assert watched.versions("bronze.raw") == {"2026-09-01.1": READY}
    run = str(run_id(dagster_run, "silver__clean"))
    with watched.workspace.catalog.reading() as session:
        result = find_run(session, run)
        assert result is not None
        assert result.business_date == TUESDAY
        assert result.parent_run_uuid == dagster_run
        read = describe_run(session, result.run_uuid).inputs
        assert [(item.full_name, item.version_tag) for item in read] == [("lake/bronze.raw", "")]


def test_the_metadata_of_a_materialization_reaches_the_catalog(watched: Watched) -> None:
    def work() -> MaterializeResult[Any]:
        return MaterializeResult(
            metadata={
                "floe/version": "2026-09-01.7",
                "floe/reads": [{"dataset": "bronze.raw", "version": "2026-09-01.3"}],
                "dagster/row_count": 12,
                "floe/bytes": 345,
                "dagster/column_schema": TableSchema([TableColumn("id", "bigint")]),
            }
        )

    dagster_run, _ = watched.run([clean(work)])
    watched.look()
    with watched.workspace.catalog.reading() as session:
        (version,) = list_versions(session, watched.workspace.dataset_id("silver.clean", session))
        assert (version.version_tag, version.state) == ("2026-09-01.7", READY)
        assert (version.row_count, version.size_bytes) == (12, 345)
        assert version.schema_hash is not None
        run = find_run(session, str(run_id(dagster_run, "silver__clean")))
        assert run is not None
        (read,) = describe_run(session, run.run_uuid).inputs
        assert read.version_tag == "2026-09-01.3"


def test_a_version_of_the_io_manager_is_recorded_once(watched: Watched) -> None:
    def work(context: AssetExecutionContext) -> MaterializeResult[Any]:
        catalog, workspace = watched.workspace.catalog, watched.workspace
        from floe.catalog.datasets import create_dataset

        with catalog.writing() as session:
            result = create_dataset(session, workspace.lake, "silver.clean")
            version = reserve_version(
                session,
                result.dataset_id,
                TUESDAY,
                state=READY,
                produced_by_run_id=str(run_id(context.run.run_id, "silver__clean")),
            )
        return MaterializeResult(metadata={"floe/version": version.version_tag})

    @asset(key=["silver", "clean"])
    def silver_clean(context: AssetExecutionContext) -> MaterializeResult[Any]:
        return work(context)

    watched.run([silver_clean])
    watched.look()
    assert watched.versions("silver.clean") == {"2026-09-01.1": READY}


def test_a_failed_asset_has_a_reason_and_no_version(watched: Watched) -> None:
    def work() -> None:
        raise ValueError("no rows came")

    dagster_run, good = watched.run([raw(), clean(work)])
    assert not good
    watched.look()
    assert watched.runs()["floe/test/silver.clean"] == ["FAILED"]
    assert watched.runs()["dagster/test/nightly"] == ["FAILED"]
    assert watched.versions("silver.clean") == {}
    error = watched.facets(str(run_id(dagster_run, "silver__clean")))["errorMessage"]
    assert error["message"] == "ValueError: no rows came"
    assert "test_observing.py" in error["stackTrace"]


def test_each_attempt_of_an_asset_is_a_separate_run(watched: Watched) -> None:
    tries: list[int] = []

    def work() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError(f"attempt {len(tries)}")

    dagster_run, good = watched.run([clean(work, retry_policy=RetryPolicy(max_retries=2))])
    assert good
    watched.look()
    assert sorted(watched.runs()["floe/test/silver.clean"]) == ["FAILED", "FAILED", "SUCCESS"]
    for attempt in (1, 2, 3):
        own = watched.facets(str(run_id(dagster_run, "silver__clean", None, attempt)))["floe"]
        assert own["attempt"] == attempt


def test_a_partition_is_the_business_date_of_its_run(watched: Watched) -> None:
    daily = DailyPartitionsDefinition("2026-08-01", end_offset=1)
    dagster_run, _ = watched.run(
        [raw(partitions_def=daily)],
        partition_key="2026-08-30",
        tags={"floe/business_date": "2026-09-01"},
    )
    watched.look()
    assert watched.versions("bronze.raw") == {"2026-08-30.1": READY}
    with watched.workspace.catalog.reading() as session:
        run = find_run(session, str(run_id(dagster_run, "bronze__raw", "2026-08-30")))
        assert run is not None
        assert run.business_date == date(2026, 8, 30)


def test_several_assets_of_one_step_are_outputs_of_one_run(watched: Watched) -> None:
    @multi_asset(specs=[Spec(["bronze", "a"]), Spec(["bronze", "b"])], name="load")
    def load_both() -> Iterator[Any]:
        yield MaterializeResult(asset_key=["bronze", "a"])
        yield MaterializeResult(asset_key=["bronze", "b"])

    watched.run([load_both])
    watched.look()
    assert watched.runs()["floe/test/load"] == ["SUCCESS"]
    assert list(watched.versions("bronze.a")) == list(watched.versions("bronze.b"))


def test_runs_that_a_process_reported_itself_are_not_changed(watched: Watched) -> None:
    def work() -> MaterializeResult[Any]:
        return MaterializeResult(metadata={"floe/run": "a run", "floe/version": "2026-09-01.1"})

    watched.run([clean(work, metadata={"floe/process": "clean"})])
    watched.look()
    assert watched.runs() == {"dagster/test/nightly": ["SUCCESS"]}


def check_of(*, passed: bool, severity: AssetCheckSeverity = AssetCheckSeverity.ERROR) -> Any:
    @asset_check(asset=AssetKey(["bronze", "raw"]), name="has_rows")
    def has_rows() -> AssetCheckResult:
        return AssetCheckResult(passed=passed, severity=severity, description="it has 0 rows")

    return has_rows


def versioned() -> Any:
    @asset(key=["bronze", "raw"])
    def bronze_raw() -> MaterializeResult[Any]:
        return MaterializeResult(metadata={"floe/version": "2026-09-01.1"})

    return bronze_raw


@pytest.mark.parametrize(
    ("passed", "severity", "status", "verdict"),
    [
        (True, AssetCheckSeverity.ERROR, "SUCCESS", "PASS"),
        (False, AssetCheckSeverity.WARN, "SUCCESS", "WARN"),
        (False, AssetCheckSeverity.ERROR, "FAILED", "FAIL"),
    ],
)
def test_a_check_is_a_run_with_a_verdict_on_the_version(
    watched: Watched, passed: bool, severity: AssetCheckSeverity, status: str, verdict: str
) -> None:
    watched.run([versioned()], [check_of(passed=passed, severity=severity)])
    watched.look()
    assert watched.runs()["floe/test/bronze.raw/has_rows"] == [status]
    with watched.workspace.catalog.reading() as session:
        dataset_id = watched.workspace.dataset_id("bronze.raw", session)
        (version,) = list_versions(session, dataset_id)
        (result,) = page_results(session, dataset_id)
        assert (result.name, result.status) == ("has_rows", verdict)
        assert result.dataset_version_id == version.dataset_version_id


def test_every_run_is_a_span_of_the_trace_of_its_dagster_run(watched: Watched) -> None:
    dagster_run, _ = watched.run([raw(), clean()])
    watched.look()
    whole = watched.facets(dagster_run)["trace"]
    assert whole["traceId"] == dagster_run.replace("-", "")
    for step in ("bronze__raw", "silver__clean"):
        span = watched.facets(str(run_id(dagster_run, step)))["trace"]
        assert span["traceId"] == whole["traceId"]
        assert span["parentSpanId"] == whole["spanId"]
        assert whole["startTime"] <= span["startTime"] <= span["endTime"] <= whole["endTime"]


def test_observing_again_from_an_old_cursor_changes_nothing(
    watched: Watched,
) -> None:
    watched.run([versioned(), clean()], [check_of(passed=False)])
    watched.look()
    before = state_of(watched.workspace.catalog)
    assert watched.look() == 0
    watched.cursor = None
    assert watched.look() > 0
    assert state_of(watched.workspace.catalog) == before


def test_a_run_observed_in_parts_gives_the_same_result_as_observed_at_once(
    watched: Watched, tmp_path: Path, site: Site
) -> None:
    seen: list[dict[str, list[str]]] = []

    def work() -> None:
        watched.look()
        seen.append(watched.runs())

    first, second = raw(), clean(work)
    watched.index = index_assets(Parts(assets=(first, second)), "test", "UTC")
    watched.run([first, second])
    assert seen == [
        {
            "dagster/test/nightly": ["STARTED"],
            "floe/test/bronze.raw": ["SUCCESS"],
            "floe/test/silver.clean": ["STARTED"],
        }
    ]
    watched.look()
    piecemeal = state_of(watched.workspace.catalog)
    other = load(make_project(tmp_path / "other")).site
    with open_workspace(other) as workspace:
        observe(watched.instance, workspace, watched.index)
        assert state_of(workspace.catalog) == piecemeal


def test_a_killed_run_leaves_nothing_started(watched: Watched) -> None:
    def work() -> None:
        watched.look()
        # What Dagster does with a run whose process is gone.
        (run,) = watched.instance.get_runs()
        watched.instance.report_run_failed(run, "The process of the run is gone.")
        watched.look()

    first = clean(work)
    watched.index = index_assets(Parts(assets=(first,)), "test", "UTC")
    watched.run([first])
    with watched.workspace.catalog.reading() as session:
        assert list_runs(session, statuses=["STARTED"]) == []


def test_a_deleted_run_leaves_nothing_started(watched: Watched) -> None:
    def work() -> None:
        watched.look()

    first = clean(work)
    watched.index = index_assets(Parts(assets=(first,)), "test", "UTC")
    dagster_run, _ = watched.run([first])
    watched.instance.delete_run(dagster_run)
    watched.look()
    assert watched.runs() == {
        "dagster/test/nightly": ["CANCELLED"],
        "floe/test/silver.clean": ["CANCELLED"],
    }


def test_a_cancelled_run_is_no_failure(watched: Watched) -> None:
    def work() -> None:
        (run,) = watched.instance.get_runs()
        watched.instance.report_run_canceled(run)
        watched.look()

    first = clean(work)
    watched.index = index_assets(Parts(assets=(first,)), "test", "UTC")
    watched.run([first])
    assert watched.runs()["floe/test/silver.clean"] == ["CANCELLED"]


def test_an_explicit_failure_is_reported_without_its_stack_trace(
    watched: Watched,
) -> None:
    def work() -> None:
        raise Failure("the feed is empty")

    dagster_run, _ = watched.run([clean(work)])
    watched.look()
    error = watched.facets(str(run_id(dagster_run, "silver__clean")))["errorMessage"]
    assert (error["message"], error["stackTrace"]) == ("the feed is empty", "")


# backfill_policy is beta in Dagster, and there is no other way.
@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`")
def test_a_run_for_several_partitions_is_one_catalog_run_per_partition(watched: Watched) -> None:
    daily = DailyPartitionsDefinition("2026-08-01", end_offset=1)

    def bronze_raw(context: AssetExecutionContext) -> None: ...

    result = asset(
        bronze_raw,
        key=["bronze", "raw"],
        partitions_def=daily,
        backfill_policy=BackfillPolicy.single_run(),
    )
    bounds = {
        "dagster/asset_partition_range_start": "2026-08-29",
        "dagster/asset_partition_range_end": "2026-08-31",
    }
    dagster_run, good = watched.run([result], tags=bounds)
    assert good
    watched.look()
    assert watched.runs()["floe/test/bronze.raw"] == ["SUCCESS"] * 3
    assert set(watched.versions("bronze.raw")) == {
        "2026-08-29.1",
        "2026-08-30.1",
        "2026-08-31.1",
    }
    with watched.workspace.catalog.reading() as session:
        run = find_run(session, str(run_id(dagster_run, "bronze__raw", "2026-08-30")))
        assert run is not None
        assert run.business_date == date(2026, 8, 30)
