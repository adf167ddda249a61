"""A run for several partitions computes Python assets key by key; others are unchanged."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetKey,
    AssetsDefinition,
    AssetSelection,
    DagsterEventType,
    DagsterInstance,
    Definitions,
    ExecuteInProcessResult,
    FilesystemIOManager,
    define_asset_job,
)
from dagster._core.execution.stats import StepEventStatus

from floe.orchestration.ranges import (
    RANGE_END,
    RANGE_START,
    RESOURCE,
    made_in_run,
    runs_per_key,
)
from tests.orchestration.projects import load_parts, make_project

# backfill_policy is beta in Dagster, and there is no other way.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`")]

ASSETS = """
    import json
    from pathlib import Path

    from dagster import (
        AssetCheckResult, AssetCheckSpec, AssetExecutionContext, AssetOut, BackfillPolicy, Config,
        DailyPartitionsDefinition, MaterializeResult, MultiPartitionsDefinition,
        OpExecutionContext, Output, RetryPolicy, StaticPartitionsDefinition, asset, graph_asset,
        multi_asset, op,
    )

    HERE = Path(__file__).parent
    DAILY = DailyPartitionsDefinition("2026-01-01", end_date="2026-02-01")
    BOTH = MultiPartitionsDefinition(
        {"region": StaticPartitionsDefinition(["us", "eu"]), "z_day": DAILY}
    )

    def note(*what):
        with (HERE / "calls").open("a") as file:
            file.write(json.dumps(what) + "\\n")

    def is_broken(key):
        file = HERE / "broken"
        return file.exists() and file.read_text() == key

    class Wish(Config):
        factor: int = 10

    @asset(partitions_def=DAILY, code_version="7", tags={"layer": "raw"}, owners=["me@example.com"])
    def days(context: AssetExecutionContext, config: Wish) -> int:
        "The day of the month."
        note(
            "days", context.partition_key, context.has_partition_key, context.partition_keys,
            list(context.partition_key_range), context.partition_time_window.start.day,
            context.run.tags["dagster/partition"],
        )
        if is_broken(context.partition_key):
            raise ValueError("no such day")
        context.add_output_metadata({"day": context.partition_key})
        return int(context.partition_key[-2:]) * config.factor // 10

    @asset(partitions_def=DAILY, check_specs=[AssetCheckSpec("even", asset="doubled")])
    def doubled(context: OpExecutionContext, days: int):
        note("doubled", context.partition_key, days)
        return MaterializeResult(
            value=2 * days, metadata={"input": days}, check_results=[AssetCheckResult(passed=True)]
        )

    @asset(partitions_def=DAILY, deps=[doubled], retry_policy=RetryPolicy(max_retries=1))
    def shaky(context):
        note("shaky", context.partition_key, context.retry_number)
        if context.partition_key == "2026-01-03" and context.retry_number == 0:
            raise ValueError("not yet")

    @asset(
        partitions_def=DAILY,
        check_specs=[AssetCheckSpec("good", asset="checked", blocking=True)],
    )
    def checked(context):
        note("checked", context.partition_key)
        good = context.partition_key != "2026-01-03"
        return MaterializeResult(value=1, check_results=[AssetCheckResult(passed=good)])

    @asset(partitions_def=DAILY, backfill_policy=BackfillPolicy.single_run())
    def whole(context) -> None:
        note("whole", context.partition_keys)

    @asset
    def plain():
        note("plain")

    @asset(partitions_def=BOTH)
    def by_region(context):
        note("by_region", str(context.partition_key), context.partition_time_window.start.day)
        return dict(context.partition_key.keys_by_dimension)

    @multi_asset(
        partitions_def=DAILY, can_subset=True,
        outs={"left": AssetOut(is_required=False), "right": AssetOut(is_required=False)},
    )
    async def pair(context):
        for name in sorted(context.op_execution_context.selected_output_names):
            note("pair", context.partition_key, name)
            yield Output(1, name)

    @op
    def one():
        return 1

    @graph_asset(partitions_def=DAILY)
    def of_a_graph():
        return one()
"""
DAYS = ["2026-01-02", "2026-01-03", "2026-01-04"]
RANGE = {RANGE_START: DAYS[0], RANGE_END: DAYS[-1]}


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as result:
        yield result


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path, "orchestration: {asset_modules: [mine]}", {"mine.py": ASSETS})


def definitions(folder: Path, *assets: str) -> Definitions:
    """The project with a job, and with an I/O manager that needs no Spark."""
    parts = load_parts(folder)
    values = FilesystemIOManager(base_dir=str(folder / "values"))
    return Definitions(
        assets=parts.assets,
        resources={**parts.resources, "io_manager": values},
        jobs=[define_asset_job("job", AssetSelection.assets(*assets))],
    )


def execute(
    folder: Path, instance: DagsterInstance, *assets: str, **given: Any
) -> ExecuteInProcessResult:
    given = {"tags": RANGE, "raise_on_error": False, **given}
    job = definitions(folder, *assets).resolve_job_def("job")
    return job.execute_in_process(instance=instance, **given)


def calls(folder: Path) -> list[Any]:
    file = folder / "calls"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def recorded(instance: DagsterInstance, run: str, kind: str) -> list[Any]:
    entries = instance.all_logs(run, of_type=DagsterEventType(kind))
    return [entry.dagster_event for entry in entries]


def made(instance: DagsterInstance, run: str, asset: str) -> list[str | None]:
    events = recorded(instance, run, "ASSET_MATERIALIZATION")
    return [event.partition for event in events if event.asset_key == AssetKey(asset)]


def test_in_a_run_for_a_range_a_function_is_called_separately_for_each_key(
    project: Path, instance: DagsterInstance
) -> None:
    assert execute(project, instance, "days").success
    assert calls(project) == [
        ["days", key, True, [key], [key, key], int(key[-2:]), key] for key in DAYS
    ]


def test_inputs_and_outputs_are_those_of_the_key(project: Path, instance: DagsterInstance) -> None:
    run = execute(project, instance, "days", "doubled")
    assert run.success
    assert [call for call in calls(project) if call[0] == "doubled"] == [
        ["doubled", key, index] for index, key in enumerate(DAYS, start=2)
    ]
    result = recorded(instance, run.run_id, "ASSET_MATERIALIZATION")
    metadata = {
        (item.asset_key.path[0], item.partition): {
            name: value.value for name, value in item.materialization.metadata.items()
        }
        for item in result
    }
    assert len(result) == 6
    for index, key in enumerate(DAYS, start=2):
        assert metadata["days", key]["day"] == key
        assert metadata["doubled", key]["input"] == index
    checks = recorded(instance, run.run_id, "ASSET_CHECK_EVALUATION")
    assert [check.asset_check_evaluation_data.check_name for check in checks] == ["even"] * 3


def test_a_range_is_one_step_of_the_run(project: Path, instance: DagsterInstance) -> None:
    run = execute(project, instance, "days", "doubled")
    for kind in ("STEP_START", "STEP_SUCCESS"):
        assert [event.step_key for event in recorded(instance, run.run_id, kind)] == [
            "days",
            "doubled",
        ]
    stats = {
        run_step_stat.step_key: run_step_stat
        for run_step_stat in instance.get_run_step_stats(run.run_id)
    }
    assert {name: (item.status, item.attempts) for name, item in stats.items()} == {
        "days": (StepEventStatus.SUCCESS, 1),
        "doubled": (StepEventStatus.SUCCESS, 1),
    }


def test_materializations_of_a_range_have_the_same_tags_as_others(
    project: Path, instance: DagsterInstance
) -> None:
    run = execute(project, instance, "days", "doubled")
    alone = execute(project, instance, "days", "doubled", partition_key=DAYS[0], tags={})
    names = [
        [
            sorted(event.materialization.tags)
            for event in recorded(instance, id_, "ASSET_MATERIALIZATION")
        ]
        for id_ in (run.run_id, alone.run_id)
    ]
    assert names[0] == [names[1][0]] * 3 + [names[1][1]] * 3


def test_a_failed_key_is_named_and_earlier_keys_stay_materialized(
    project: Path, instance: DagsterInstance
) -> None:
    (project / "broken").write_text(DAYS[1])
    run = execute(project, instance, "days", "doubled")
    assert not run.success
    (failure,) = recorded(instance, run.run_id, "STEP_FAILURE")
    assert f"It failed for the partition {DAYS[1]}." in failure.step_failure_data.error.to_string()
    assert "no such day" in failure.step_failure_data.error.to_string()
    assert [call[1] for call in calls(project)] == DAYS[:2]
    assert made(instance, run.run_id, "days") == DAYS[:1]
    assert instance.get_materialized_partitions(AssetKey("days")) == {DAYS[0]}


def test_a_retried_step_continues_with_the_failed_key(
    project: Path, instance: DagsterInstance
) -> None:
    run = execute(project, instance, "shaky")
    assert run.success
    assert calls(project) == [
        ["shaky", DAYS[0], 0],
        ["shaky", DAYS[1], 0],
        ["shaky", DAYS[1], 1],
        ["shaky", DAYS[2], 1],
    ]
    assert made(instance, run.run_id, "shaky") == DAYS


def test_a_key_that_a_blocking_check_rejects_does_not_count_as_materialized(
    project: Path, instance: DagsterInstance
) -> None:
    run = execute(project, instance, "checked")
    assert not run.success
    assert calls(project) == [["checked", key] for key in DAYS[:2]]
    assert made(instance, run.run_id, "checked") == DAYS[:2]
    result = made_in_run(instance, run.run_id)
    assert {key for key, assets in result.items() if assets} == {DAYS[0]}


def test_an_asset_with_a_backfill_policy_gets_the_whole_range(
    project: Path, instance: DagsterInstance
) -> None:
    run = execute(project, instance, "whole")
    assert calls(project) == [["whole", DAYS]]
    assert made(instance, run.run_id, "whole") == DAYS


def test_an_unpartitioned_asset_runs_once_in_a_run_for_a_range(
    project: Path, instance: DagsterInstance
) -> None:
    run = execute(project, instance, "plain", "days")
    assert [call for call in calls(project) if call[0] == "plain"] == [["plain"]]
    assert made(instance, run.run_id, "plain") == [None]


def test_all_keys_of_a_date_come_before_those_of_the_next(
    project: Path, instance: DagsterInstance
) -> None:
    tags = {RANGE_START: "us|2026-01-02", RANGE_END: "eu|2026-01-03"}
    run = execute(project, instance, "by_region", tags=tags)
    assert run.success
    keys = ["us|2026-01-02", "eu|2026-01-02", "us|2026-01-03", "eu|2026-01-03"]
    assert [(key, day) for _, key, day in calls(project)] == list(
        zip(keys, [2, 2, 3, 3], strict=True)
    )
    assert made(instance, run.run_id, "by_region") == keys


def test_a_subset_of_the_assets_of_one_function_is_computed_key_by_key(
    project: Path, instance: DagsterInstance
) -> None:
    run = execute(project, instance, "right")
    assert run.success
    assert calls(project) == [["pair", key, "right"] for key in DAYS]
    assert made(instance, run.run_id, "right") == DAYS


def test_an_ordinary_run_behaves_as_without_floe(project: Path, instance: DagsterInstance) -> None:
    def events(run: ExecuteInProcessResult) -> list[tuple[str, str | None, str | None]]:
        return [
            (entry.dagster_event.event_type_value, entry.step_key, entry.dagster_event.partition)
            for entry in instance.all_logs(run.run_id)
            if entry.dagster_event is not None
            and entry.dagster_event.event_type_value not in ("ENGINE_EVENT", "LOGS_CAPTURED")
        ]

    given: dict[str, Any] = {"partition_key": DAYS[0], "tags": {}}
    ours = execute(project, instance, "days", "doubled", **given)
    import mine  # type: ignore[import-not-found]

    bare = Definitions(
        assets=[mine.days, mine.doubled],
        resources={"io_manager": FilesystemIOManager(base_dir=str(project / "bare"))},
        jobs=[define_asset_job("job", "*")],
    )
    theirs = bare.resolve_job_def("job").execute_in_process(
        instance=instance, partition_key=DAYS[0]
    )
    assert events(ours) == events(theirs)
    assert ours.output_for_node("doubled") == theirs.output_for_node("doubled") == 4


def test_an_asset_computed_key_by_key_is_otherwise_unchanged(project: Path) -> None:
    parts = load_parts(project)
    import mine

    functions = [asset for asset in parts.assets if isinstance(asset, AssetsDefinition)]
    ours = {key: function for function in functions for key in function.keys}
    for name in ("days", "doubled", "shaky", "plain", "by_region"):
        asset, before = ours[AssetKey(name)], getattr(mine, name)
        assert runs_per_key(asset)
        assert list(asset.specs) == list(before.specs)
        assert list(asset.check_specs) == list(before.check_specs)
        op, old = asset.op, before.op
        assert op.required_resource_keys - {RESOURCE} == old.required_resource_keys
        for same in ("name", "description", "tags", "retry_policy", "pool", "compute_fn"):
            assert getattr(op, same) == getattr(old, same)
        assert (op.ins, op.outs) == (old.ins, old.outs)
        assert op.config_schema.as_field() is not None
    for name in ("whole", "of_a_graph"):
        assert not runs_per_key(ours[AssetKey(name)])


def test_config_reaches_every_key(project: Path, instance: DagsterInstance) -> None:
    config = {"ops": {"days": {"config": {"factor": 100}}}}
    run = execute(project, instance, "days", "doubled", run_config=config)
    assert run.success
    assert [call[2] for call in calls(project) if call[0] == "doubled"] == [20, 30, 40]
