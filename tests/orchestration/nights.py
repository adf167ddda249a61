"""A project whose processes are run by tiny jobs, and a daemon that ticks on request."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from dagster import (
    DagsterInstance,
    Definitions,
    JobDefinition,
    OpExecutionContext,
    PartitionsDefinition,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    build_sensor_context,
    job,
    op,
)

from floe.catalog.versions import READY, reserve_version
from floe.events.ingest import read_claim
from floe.execution.planning import RunOptions, plan_run
from floe.execution.reporting import Failure, ReportedInput, ReportedOutput, Reporter, RunFacts
from floe.execution.site import Site
from floe.execution.workspace import Workspace, open_workspace
from floe.orchestration.dataset_triggers import Target, make_sensor
from floe.orchestration.loading import load
from floe.orchestration.processes import process_job_name as job_name
from floe.orchestration.runtime import close_shared_workspaces
from floe.spec.identity import BUSINESS_DATE_TAG
from floe.spec.identity import run_id as run_id_of
from tests.orchestration.projects import make_project

RUN_KEY = "dagster/run_key"
MONDAY, TUESDAY, WEDNESDAY = date(2026, 8, 31), date(2026, 9, 1), date(2026, 9, 2)
FEED = "{format: csv, location: 'landing/{business_date}/*.csv'}"


@dataclass
class Night:
    """A project on a Dagster instance, with the sensor that starts its processes."""

    site: Site
    instance: DagsterInstance
    partitions: dict[str, PartitionsDefinition[Any]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Processes whose runs fail."""
    cursor: str | None = None
    log: list[str] = field(default_factory=list)
    """The runs, in order."""

    def __post_init__(self) -> None:
        spec = self.site.spec
        self.jobs = {job_name(name): self._job(name) for name in spec.processes}
        targets = {
            name: Target(job_name(name), self.partitions.get(name)) for name in spec.processes
        }
        self.sensor: SensorDefinition = make_sensor(self.site, targets, list(self.jobs.values()))
        self.repository = Definitions(
            jobs=list(self.jobs.values()), sensors=[self.sensor]
        ).get_repository_def()

    def ask(self, *, keep_cursor: bool = True) -> list[RunRequest]:
        """Evaluate the sensor; with `dies` the cursor is not stored."""
        with build_sensor_context(
            instance=self.instance, cursor=self.cursor, repository_def=self.repository
        ) as context:
            result = self.sensor.evaluate_tick(context)
        if keep_cursor:
            self.cursor = result.cursor
        return list(result.run_requests or ())

    def start(self, request: RunRequest) -> bool:
        """Start a requested run unless its run key exists, as Dagster's daemon does."""
        assert request.run_key is not None
        if self.instance.get_runs(RunsFilter(tags={RUN_KEY: request.run_key})):
            return False
        self.jobs[request.job_name or ""].execute_in_process(
            instance=self.instance,
            tags={**request.tags, RUN_KEY: request.run_key},
            partition_key=request.partition_key,
            raise_on_error=False,
        )
        return True

    def tick(self) -> list[str]:
        """Evaluate once and start the requested runs; return them."""
        before = len(self.log)
        for request in self.ask():
            self.start(request)
        return self.log[before:]

    def settle(self) -> list[str]:
        """Tick until nothing is requested; return the runs in order."""
        before = len(self.log)
        while self.tick():
            pass
        return self.log[before:]

    def register(self, dataset: str, day: date, version: str | None = None, **more: Any) -> None:
        """Register a version as a legacy job does."""
        from floe.client.messages import dataset_message

        message = dataset_message(dataset, version, business_date=day, **more)
        self.send(message)

    def send(self, message: dict[str, Any]) -> None:
        import msgspec

        with open_workspace(self.site) as workspace:
            claim = read_claim(msgspec.json.encode(message))
            assert workspace.door.submit([claim]).result() == {}

    def _job(self, process: str) -> JobDefinition:
        """A job that reports a run of a process without doing its work."""

        @op(name=f"run_{job_name(process)}")
        def run(context: OpExecutionContext) -> None:
            day = date.fromisoformat(context.run.tags[BUSINESS_DATE_TAG])
            self.log.append(f"{process} {day}")
            with open_workspace(self.site) as workspace:
                _run(workspace, process, day, context.run_id, fails=process in self.broken)

        @job(name=job_name(process), partitions_def=self.partitions.get(process))
        def made() -> None:
            run()

        return made


def _run(workspace: Workspace, process: str, day: date, dagster_run: str, *, fails: bool) -> None:
    plan = plan_run(workspace, RunOptions(process, day))
    facts = RunFacts(
        str(run_id_of(dagster_run, process)),
        process,
        day,
        {"inputs": {alias: item.tags for alias, item in plan.inputs.items()}},
        dagster_run,
        [
            ReportedInput(source.dataset, tag)
            for source in plan.inputs.values()
            for tag in source.tags
        ],
    )
    reporter = Reporter(workspace)
    reporter.started(facts)
    if fails:
        reporter.failed(facts, Failure("it was told to"))
        return
    result = []
    with workspace.catalog.writing() as session:
        for output in plan.outputs.values():
            dataset_id = workspace.dataset_id(output.dataset, session)
            version = reserve_version(
                session, dataset_id, day, state=READY, produced_by_run_id=facts.run_id
            )
            result.append(ReportedOutput(output.dataset, version.version_tag))
    reporter.completed(facts, result)


@contextmanager
def open_night(folder: Path, floe_yaml: str, **more: Any) -> Iterator[Night]:
    """Write a project, and open it with its own instance."""
    site = load(make_project(folder, floe_yaml)).site
    try:
        with DagsterInstance.ephemeral() as instance:
            yield Night(site, instance, **more)
    finally:
        close_shared_workspaces()
