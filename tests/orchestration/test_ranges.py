"""A run for several partitions computes Python assets key by key; any other run is as it was."""

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
    is_key_by_key,
    made_in_run,
)
from tests.orchestration.projects import load_parts, make_project

# It is the way to say that an asset knows ranges, beta or not.
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
    with DagsterInstance.ephemeral() as made:
        yield made


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
    return [one.partition for one in events if one.asset_key == AssetKey(asset)]


def test_in_a_run_for_a_range_a_function_is_called_for_each_key_as_if_it_were_alone(
    project: Path, instance: DagsterInstance
) -> None:
    assert execute(project, instance, "days").success
    assert calls(project) == [
        ["days", key, True, [key], [key, key], int(key[-2:]), key] for key in DAYS
    ]


def test_inputs_and_outputs_are_those_of_the_key(project: Path, instance: DagsterInstance) -> None:
    run = execute(project, instance, "days", "doubled")
    assert run.success
    assert [one for one in calls(project) if one[0] == "doubled"] == [
        ["doubled", key, number] for number, key in enumerate(DAYS, start=2)
    ]
    found = recorded(instance, run.run_id, "ASSET_MATERIALIZATION")
    metadata = {
        (one.asset_key.path[0], one.partition): {
            name: value.value for name, value in one.materialization.metadata.items()
        }
        for one in found
    }
    assert len(found) == 6
    for number, key in enumerate(DAYS, start=2):
        assert metadata["days", key]["day"] == key
        assert metadata["doubled", key]["input"] == number
    checks = recorded(instance, run.run_id, "ASSET_CHECK_EVALUATION")
    assert [one.asset_check_evaluation_data.check_name for one in checks] == ["even"] * 3


def test_a_range_is_one_step_of_the_run(project: Path, instance: DagsterInstance) -> None:
    run = execute(project, instance, "days", "doubled")
    for kind in ("STEP_START", "STEP_SUCCESS"):
        assert [one.step_key for one in recorded(instance, run.run_id, kind)] == ["days", "doubled"]
    stats = {one.step_key: one for one in instance.get_run_step_stats(run.run_id)}
    assert {name: (one.status, one.attempts) for name, one in stats.items()} == {
        "days": (StepEventStatus.SUCCESS, 1),
        "doubled": (StepEventStatus.SUCCESS, 1),
    }


def test_materialisations_of_a_range_tell_where_they_come_from_like_any_other(
    project: Path, instance: DagsterInstance
) -> None:
    run = execute(project, instance, "days", "doubled")
    alone = execute(project, instance, "days", "doubled", partition_key=DAYS[0], tags={})
    names = [
        [
            sorted(one.materialization.tags)
            for one in recorded(instance, id_, "ASSET_MATERIALIZATION")
        ]
        for id_ in (run.run_id, alone.run_id)
    ]
    assert names[0] == [names[1][0]] * 3 + [names[1][1]] * 3


def test_a_key_that_fails_is_named_and_those_before_it_stay(
    project: Path, instance: DagsterInstance
) -> None:
    (project / "broken").write_text(DAYS[1])
    run = execute(project, instance, "days", "doubled")
    assert not run.success
    (failure,) = recorded(instance, run.run_id, "STEP_FAILURE")
    assert f"It failed for the partition {DAYS[1]}." in failure.step_failure_data.error.to_string()
    assert "no such day" in failure.step_failure_data.error.to_string()
    assert [one[1] for one in calls(project)] == DAYS[:2]
    assert made(instance, run.run_id, "days") == DAYS[:1]
    assert instance.get_materialized_partitions(AssetKey("days")) == {DAYS[0]}


def test_a_step_that_is_tried_again_goes_on_with_the_key_that_failed(
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


def test_a_key_that_a_blocking_check_refuses_does_not_count_as_made(
    project: Path, instance: DagsterInstance
) -> None:
    run = execute(project, instance, "checked")
    assert not run.success
    assert calls(project) == [["checked", key] for key in DAYS[:2]]
    assert made(instance, run.run_id, "checked") == DAYS[:2]
    found = made_in_run(instance, run.run_id)
    assert {key for key, assets in found.items() if assets} == {DAYS[0]}


def test_an_asset_that_knows_ranges_gets_the_whole_range(
    project: Path, instance: DagsterInstance
) -> None:
    run = execute(project, instance, "whole")
    assert calls(project) == [["whole", DAYS]]
    assert made(instance, run.run_id, "whole") == DAYS


def test_an_asset_without_partitions_is_made_once_in_a_run_for_a_range(
    project: Path, instance: DagsterInstance
) -> None:
    run = execute(project, instance, "plain", "days")
    assert [one for one in calls(project) if one[0] == "plain"] == [["plain"]]
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


def test_a_part_of_several_assets_of_one_function_is_made_key_by_key(
    project: Path, instance: DagsterInstance
) -> None:
    run = execute(project, instance, "right")
    assert run.success
    assert calls(project) == [["pair", key, "right"] for key in DAYS]
    assert made(instance, run.run_id, "right") == DAYS


def test_an_ordinary_run_is_as_without_floe(project: Path, instance: DagsterInstance) -> None:
    def events(run: ExecuteInProcessResult) -> list[tuple[str, str | None, str | None]]:
        return [
            (one.dagster_event.event_type_value, one.step_key, one.dagster_event.partition)
            for one in instance.all_logs(run.run_id)
            if one.dagster_event is not None
            and one.dagster_event.event_type_value not in ("ENGINE_EVENT", "LOGS_CAPTURED")
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


def test_an_asset_that_is_made_key_by_key_is_otherwise_the_same(project: Path) -> None:
    parts = load_parts(project)
    import mine

    functions = [one for one in parts.assets if isinstance(one, AssetsDefinition)]
    ours = {key: one for one in functions for key in one.keys}
    for name in ("days", "doubled", "shaky", "plain", "by_region"):
        asset, before = ours[AssetKey(name)], getattr(mine, name)
        assert is_key_by_key(asset)
        assert list(asset.specs) == list(before.specs)
        assert list(asset.check_specs) == list(before.check_specs)
        op, old = asset.op, before.op
        assert op.required_resource_keys - {RESOURCE} == old.required_resource_keys
        for same in ("name", "description", "tags", "retry_policy", "pool", "compute_fn"):
            assert getattr(op, same) == getattr(old, same)
        assert (op.ins, op.outs) == (old.ins, old.outs)
        assert op.config_schema.as_field() is not None
    for name in ("whole", "of_a_graph"):
        assert not is_key_by_key(ours[AssetKey(name)])


def test_config_reaches_every_key(project: Path, instance: DagsterInstance) -> None:
    config = {"ops": {"days": {"config": {"factor": 100}}}}
    run = execute(project, instance, "days", "doubled", run_config=config)
    assert run.success
    assert [one[2] for one in calls(project) if one[0] == "doubled"] == [20, 30, 40]
