from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance, SensorDefinition

from floe.orchestration.sensors.custom import SensorResultError
from floe.spec.findings import SpecError
from tests.orchestration.sensors.shop import Daemon, build_shop, make_shop, open_shop

DECISIONS = """
    from dagster import RunRequest, SensorResult, SkipReason, sensor


    def answer(value: str) -> object:
        return {
            "yes": True,
            "no": False,
            "nothing": None,
            "request": RunRequest(run_key="one", tags={"colour": "red"}),
            "skip": SkipReason("the market is closed"),
            "several": [RunRequest(run_key="one"), RunRequest(run_key="two")],
            "result": SensorResult(run_requests=[RunRequest(run_key="one")], cursor="7"),
            "number": 7,
            "text": "yes",
        }[value]


    def each(count: int = 2):
        for number in range(count):
            yield RunRequest(run_key=str(number))


    def with_context(context, step: int) -> bool:
        place = int(context.cursor or 0) + step
        context.update_cursor(str(place))
        return place % 2 == 0


    def raises() -> bool:
        raise LookupError("no calendar")


    async def later() -> bool:
        return True


    @sensor(job_name="make_revenue")
    def ready_made(): ...
"""


def declared(function: str, args: str = "{}", job: str = "make_revenue") -> str:
    return (
        f"watch: {{type: custom, job: {job}, target_function: decisions.{function}, args: {args}}}"
    )


def shop(folder: Path, *declared_as: Any) -> Path:
    return make_shop(folder, declared(*declared_as), {"decisions.py": DECISIONS})


def daemon_for(folder: Path, *declared_as: Any) -> Daemon:
    return Daemon(build_shop(shop(folder, *declared_as)), DagsterInstance.ephemeral())


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        ("yes", [None]),
        ("no", []),
        ("nothing", []),
        ("request", ["one"]),
        ("skip", []),
        ("several", ["one", "two"]),
        ("result", ["one"]),
    ],
)
def test_the_result_of_the_function_decides_whether_the_job_starts(
    tmp_path: Path, value: str, keys: list[str | None]
) -> None:
    daemon = daemon_for(tmp_path, "answer", f'{{value: "{value}"}}')
    assert [request.run_key for request in daemon.look("watch").requests] == keys


def test_a_requested_run_is_started(tmp_path: Path) -> None:
    files = {"decisions.py": DECISIONS}
    with open_shop(tmp_path, declared("answer", "{value: request}"), files=files) as daemon:
        [run] = daemon.tick("watch")
        assert (run.job_name, run.tags["colour"]) == ("make_revenue", "red")
        assert daemon.tick("watch") == []


def test_the_reason_to_skip_is_shown(tmp_path: Path) -> None:
    daemon = daemon_for(tmp_path, "answer", "{value: skip}")
    assert daemon.look("watch").skipped == "the market is closed"


def test_a_generator_may_request_several_runs(tmp_path: Path) -> None:
    daemon = daemon_for(tmp_path, "each", "{count: 3}")
    assert [request.run_key for request in daemon.look("watch").requests] == ["0", "1", "2"]


def test_a_function_may_store_a_cursor_through_the_context(tmp_path: Path) -> None:
    daemon = daemon_for(tmp_path, "with_context", "{step: 1}")
    assert [len(daemon.look("watch").requests) for _ in range(4)] == [0, 1, 0, 1]
    assert daemon.cursors["watch"] == "4"


def test_true_starts_the_newest_partition_of_a_partitioned_job(tmp_path: Path) -> None:
    daemon = daemon_for(tmp_path, "answer", '{value: "yes"}', "make_daily")
    [request] = daemon.look("watch").requests
    assert request.partition_key is not None
    assert request.run_key is None


@pytest.mark.parametrize("value", ["number", "text"])
def test_an_invalid_result_is_an_error_that_lists_the_valid_ones(
    tmp_path: Path, value: str
) -> None:
    daemon = daemon_for(tmp_path, "answer", f"{{value: {value}}}")
    with pytest.raises(SensorResultError, match=r"'decisions\.answer' returned a (int|str)"):
        daemon.look("watch")


def test_an_exception_of_the_function_fails_the_evaluation(tmp_path: Path) -> None:
    daemon = daemon_for(tmp_path, "raises")
    with pytest.raises(LookupError, match="no calendar"):
        daemon.look("watch")


@pytest.mark.parametrize(
    ("function", "args", "says"),
    [
        ("anwser", "{}", "target_function: The function 'decisions.anwser' cannot be loaded"),
        ("answer", "{}", "args.value: is missing"),
        ("answer", "{value: x, vaule: y}", "args.vaule: 'decisions.answer' takes no argument"),
        ("each", "{count: many}", "args.count: should be a valid integer"),
        ("with_context", "{step: 1, context: 2}", "args.context: is set by floe"),
        ("later", "{}", "target_function: 'decisions.later' is a coroutine, which does not run"),
        ("ready_made", "{}", "target_function: 'decisions.ready_made' is a Dagster sensor"),
    ],
)
def test_a_missing_function_or_wrong_arguments_are_rejected_at_load(
    tmp_path: Path, function: str, args: str, says: str
) -> None:
    folder = shop(tmp_path, function, args)
    with pytest.raises(SpecError) as caught:
        build_shop(folder)
    assert f"orchestration.sensors.watch.{says}" in str(caught.value)


def test_all_errors_of_sensors_are_reported_together(tmp_path: Path) -> None:
    sensors = f"""
{declared("answer")}
files: {{type: file_watcher, job: make_revenue, path: " "}}
assets: {{type: asset_sensor, job: make_revenue, watched_assets: [nothing]}}
    """
    folder = make_shop(tmp_path, sensors, {"decisions.py": DECISIONS})
    with pytest.raises(SpecError) as caught:
        build_shop(folder)
    assert [finding.key for finding in caught.value.findings] == [
        "orchestration.sensors.watch.args.value",
        "orchestration.sensors.files.path",
        "orchestration.sensors.assets.watched_assets[0]",
    ]


def test_a_name_that_dagster_reserves_is_rejected_at_load(tmp_path: Path) -> None:
    folder = make_shop(tmp_path, "in: {type: file_watcher, job: make_revenue, path: landing}")
    with pytest.raises(SpecError, match=r"orchestration\.sensors\.in: is a name that Dagster"):
        build_shop(folder)


def test_sensors_are_part_of_the_definitions(tmp_path: Path) -> None:
    parts = build_shop(shop(tmp_path, "answer", "{value: x}"))
    [sensor] = parts.definitions().get_repository_def().sensor_defs
    assert isinstance(sensor, SensorDefinition)
    assert sensor.name == "watch"
