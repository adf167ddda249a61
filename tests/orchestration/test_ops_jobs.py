"""Ops jobs: functions as jobs, and floe's maintenance."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dagster import DagsterInstance, ExecuteInProcessResult

from floe.execution.spark.server import Server
from floe.orchestration.jobs import build_jobs
from floe.orchestration.loading import Parts, load
from floe.spec.findings import SpecError
from tests.execution.maintenance.factory import age
from tests.execution.workshop import TOTALS, Workshop
from tests.orchestration.projects import make_project

if TYPE_CHECKING:
    from dagster import JobDefinition


OPS = """
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from dagster import Config, op

if TYPE_CHECKING:
    from elsewhere import Unknown


def clean(folder: str, retention_days: int = 30, day: date | None = None, tags: list[str] = ()):
    Path(__file__).with_name("said").write_text(f"{folder} {retention_days} {day!r} {tags}")
    return {"removed": 3}


def announce(context, note: str) -> str:
    context.log.info(note)
    return f"{context.run_id} {note}"


def anything(**more): ...
def unread(thing: "Unknown"): ...
def nothing() -> object: return object()
def broken(): raise ValueError("the disk is full")
def steps(): yield 1
async def later(): ...


class Sweep(Config):
    folder: str
    days: int = 30


@op
def sweep(context, config: Sweep) -> str:
    Path(__file__).with_name("said").write_text(f"{config.folder} {config.days}")
    return config.folder


@op
def greet(who: str) -> None:
    Path(__file__).with_name("said").write_text(f"hello {who}")


@op(required_resource_keys={"warehouse"})
def needy(context): ...
NUMBER = 3
"""
DATASETS = """
datasets:
  raw.trades: {format: csv, location: "landing/*.csv"}
  risk.totals: {}
"""


def build(folder: Path, job: str) -> "JobDefinition":
    text = f"{DATASETS}orchestration:\n  jobs:\n    tidy: {{type: ops, {job}}}\n"
    loading = load(make_project(folder, text, {"upkeeping/chores.py": OPS}))
    parts = build_jobs(loading, Parts())
    return parts.definitions().resolve_job_def("tidy")


def run(job: "JobDefinition", **how: Any) -> ExecuteInProcessResult:
    with DagsterInstance.ephemeral() as instance:
        return job.execute_in_process(instance=instance, **how)


def shown(result: ExecuteInProcessResult) -> Any:
    """The metadata of the function's result in a run."""
    (event,) = [event for event in result.all_events if event.event_type_value == "STEP_OUTPUT"]
    logged = event.step_output_data.metadata.get("result")
    return logged.value if logged is not None else None


def refusal(folder: Path, job: str) -> str:
    with pytest.raises(SpecError) as caught:
        build(folder, job)
    return str(caught.value)


CHORES = "target_function: upkeeping.chores"


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (".sweep, args: {folder: landing, days: 7}", "landing 7"),
        (".sweep, args: {folder: landing}", "landing 30"),
        (".greet, args: {who: you}", "hello you"),
    ],
)
def test_an_ops_job_may_name_a_dagster_op(tmp_path: Path, job: str, expected: str) -> None:
    result = build(tmp_path, f"{CHORES}{job}")
    assert run(result).success
    assert (tmp_path / "upkeeping/said").read_text() == expected


def test_an_ops_job_calls_its_function_with_its_arguments(tmp_path: Path) -> None:
    args = "{folder: landing, retention_days: 7, day: 2026-09-01, tags: [a, b]}"
    result = run(build(tmp_path, f"{CHORES}.clean, args: {args}"))
    message = (tmp_path / "upkeeping/said").read_text()
    assert message == "landing 7 datetime.date(2026, 9, 1) ['a', 'b']"
    assert shown(result) == {"removed": 3}


def test_missing_arguments_have_the_defaults_of_the_function(tmp_path: Path) -> None:
    run(build(tmp_path, f"{CHORES}.clean, args: {{folder: landing}}"))
    assert (tmp_path / "upkeeping/said").read_text() == "landing 30 None ()"


def test_a_parameter_named_context_gets_the_context_of_the_op(tmp_path: Path) -> None:
    result = run(build(tmp_path, f"{CHORES}:announce, args: {{note: hello}}"))
    assert shown(result) == f"{result.run_id} hello"


def test_a_result_that_cannot_be_shown_is_left_out(tmp_path: Path) -> None:
    result = run(build(tmp_path, f"{CHORES}.nothing"))
    assert result.success
    assert shown(result) is None


def test_a_function_that_fails_fails_the_run(tmp_path: Path) -> None:
    result = run(build(tmp_path, f"{CHORES}.broken"), raise_on_error=False)
    assert not result.success


def test_an_ops_job_keeps_its_description_and_tags(tmp_path: Path) -> None:
    job = build(tmp_path, f"{CHORES}.nothing, description: Tidy up, tags: {{team: ops}}")
    assert job.description == "Tidy up"
    assert job.tags == {"team": "ops"}


def test_a_function_with_keyword_arguments_takes_any_argument(tmp_path: Path) -> None:
    assert run(build(tmp_path, f"{CHORES}.anything, args: {{a: 1, b: [x]}}")).success


def test_a_type_that_only_type_checkers_know_is_not_checked(tmp_path: Path) -> None:
    assert run(build(tmp_path, f"{CHORES}.unread, args: {{thing: 1}}")).success


@pytest.mark.parametrize(
    ("job", "key", "words"),
    [
        (".clean", "args.folder", "is missing. 'upkeeping.chores.clean' requires it"),
        (".clean, args: {folder: x, folders: y}", "args.folders", "Did you mean 'folder'?"),
        (".clean, args: {folder: 3}", "args.folder", "should be a valid string"),
        (
            ".clean, args: {folder: x, retention_days: often}",
            "args.retention_days",
            "should be a valid integer",
        ),
        (
            ".clean, args: {folder: x, retention_days: true}",
            "args.retention_days",
            "should be a valid integer",
        ),
        (".clean, args: {folder: x, tags: [a, 3]}", "args.tags[1]", "should be a valid string"),
        (".clean, args: {folder: x, day: soon}", "args.day", "should be a valid date"),
        (".announce, args: {note: x, context: y}", "args.context", "is set by floe"),
        (".nothing, args: {x: 1}", "args.x", "takes no argument 'x'. It takes no arguments."),
        (".clear", "target_function", "has no 'clear'. Did you mean 'clean'?"),
        (".NUMBER", "target_function", "is not a function"),
        (
            ".steps",
            "target_function",
            "is a coroutine or a generator, which does not run when called",
        ),
        (
            ".later",
            "target_function",
            "is a coroutine or a generator, which does not run when called",
        ),
        (".sweep", "args", "Missing required config entry"),
        (".sweep, args: {folder: 3}", "args", "is not valid for expected type"),
        (".needy", "target_function", "needs the resource 'warehouse'"),
        ("x.clean", "target_function", "there is no module 'upkeeping.choresx'"),
    ],
)
def test_invalid_arguments_are_rejected_at_load(
    tmp_path: Path, job: str, key: str, words: str
) -> None:
    message = refusal(tmp_path, f"{CHORES}{job}")
    assert f"floe.yaml:8: orchestration.jobs.tidy.{key}: " in message
    assert words in message


@pytest.mark.parametrize(
    ("job", "key", "words"),
    [
        ("vacuum, args: {dataset: risk.total}", "dataset", "Did you mean 'risk.totals'?"),
        ("vacuum, args: {datasets: [risk.totals, risk.x]}", "datasets[1]", "no dataset 'risk.x'"),
        ("vacuum, args: {retention_days: -1}", "retention_days", "greater than or equal to 0"),
        ("vacuum, args: {retention_days: week}", "retention_days", "should be a valid number"),
        ("vacuum, args: {retain: weekly}", "retain", "is not a duration. Write it as 30s"),
        (
            "vacuum, args: {retain: 7d, retention_days: 7}",
            "retention_days",
            "is set together with retain",
        ),
        ("vacuum, args: {days: 7}", "days", "'vacuum' takes no argument 'days'"),
        ("compact, args: {dataset: raw.trades}", "dataset", "Only lake tables (format: iceberg)"),
        ("compact, args: {min_input_files: 1}", "min_input_files", "greater than or equal to 2"),
        ("analyze, args: {dry_run: true}", "dry_run", "'analyze' takes no argument 'dry_run'"),
    ],
)
def test_arguments_of_maintenance_jobs_are_checked_at_load(
    tmp_path: Path, job: str, key: str, words: str
) -> None:
    message = refusal(tmp_path, f"target_function: {job}")
    assert f"floe.yaml:8: orchestration.jobs.tidy.args.{key}: " in message
    assert words in message


@pytest.mark.java
@pytest.mark.slow
def test_an_ops_job_vacuums_versions_past_its_retention(
    tmp_path: Path, spark_server: Server
) -> None:
    shop = Workshop(tmp_path, spark_server)
    ops = {
        name: {"type": "ops", "target_function": function, "args": args}
        for name, function, args in (
            ("lasting", "vacuum", {"dataset": "risk.totals", "retention_days": 10}),
            ("trial", "vacuum", {"retention_days": 2, "dry_run": True}),
            ("weekly", "vacuum", {"datasets": ["risk.totals"], "retain": "0s"}),
            ("tight", "compact", {"min_input_files": 2}),
            ("counted", "analyze", {}),
        )
    }
    result = {"outputs": {"totals": "risk.totals"}, "sql": "select 2 as trades, 15.5D as amount"}
    shop.declare({"risk.totals": TOTALS}, {"totals": result}, orchestration={"jobs": ops})
    with shop.open() as opened:
        opened.run("totals")
        opened.run("totals")
        first, second = [version.version_tag for version in opened.versions("risk.totals")]
        age(opened.workspace, "risk.totals", first, days=5)
        snapshots = count_snapshots(opened)

        loading = load(tmp_path, {**opened.workspace.site.environ})
        definitions = build_jobs(loading, Parts()).definitions()
        answers = {name: shown(run(definitions.resolve_job_def(name))) for name in list(ops)[:2]}
        assert answers["lasting"]["items"] == []
        assert [
            answer["name"] for answer in answers["trial"]["items"] if answer["kind"] == "version"
        ] == [first]
        assert opened.states("risk.totals") == {first: "SUPERSEDED", second: "READY"}

        answers = {name: shown(run(definitions.resolve_job_def(name))) for name in list(ops)[2:]}
        assert first in {answer["name"] for answer in answers["weekly"]["items"]}
        assert opened.states("risk.totals") == {first: "VACUUMED", second: "READY"}
        assert count_snapshots(opened) == snapshots - 1
        assert opened.main("risk.totals") == [(2, 15.5)]
        assert [answer["dataset"] for answer in answers["tight"]["tables"]] == ["risk.totals"]
        (counted,) = answers["counted"]["datasets"]
        assert (counted["dataset"], counted["rows"]) == ("risk.totals", 1)


def count_snapshots(opened: Any) -> int:
    """The number of snapshots of the table in the lake."""
    with opened.sparks.session() as spark:
        return int(spark.table("lake.risk.totals.snapshots").count())
