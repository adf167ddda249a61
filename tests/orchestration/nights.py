"""A project whose processes are run by tiny jobs, and a daemon that a test moves on by ticks."""

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
from floe.execution.planning import Wish, plan_run
from floe.execution.reporting import Failure, ReportedInput, ReportedOutput, Reporter, RunFacts
from floe.execution.site import Site
from floe.execution.workspace import Workspace, open_workspace
from floe.orchestration.loading import load
from floe.orchestration.process_jobs import process_job_name as job_name
from floe.orchestration.standing import close_standing
from floe.orchestration.triggering import Target, make_sensor
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
    """What has run, in order."""

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
        """Evaluate the sensor; a daemon that dies afterwards does not keep its cursor."""
        with build_sensor_context(
            instance=self.instance, cursor=self.cursor, repository_def=self.repository
        ) as context:
            found = self.sensor.evaluate_tick(context)
        if keep_cursor:
            self.cursor = found.cursor
        return list(found.run_requests or ())

    def start(self, request: RunRequest) -> bool:
        """Run what was asked for, unless a run has its key already: as Dagster's daemon does."""
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
        """Evaluate once, and run what is asked for; return what has run."""
        before = len(self.log)
        for request in self.ask():
            self.start(request)
        return self.log[before:]

    def settle(self) -> list[str]:
        """Tick until nothing is asked for any more; return what has run, in order."""
        before = len(self.log)
        while self.tick():
            pass
        return self.log[before:]

    def register(self, dataset: str, day: date, version: str | None = None, **more: Any) -> None:
        """Announce a version as an old job does."""
        from floe.client.messages import dataset_message

        message = dataset_message(dataset, version, business_date=day, **more)
        self.send(message)

    def send(self, message: dict[str, Any]) -> None:
        import msgspec

        with open_workspace(self.site) as workspace:
            claim = read_claim(msgspec.json.encode(message))
            assert workspace.door.submit([claim]).result() == {}

    def _job(self, process: str) -> JobDefinition:
        """A job that does what a process's run does, without the work."""

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
    plan = plan_run(workspace, Wish(process, day))
    facts = RunFacts(
        str(run_id_of(dagster_run, process)),
        process,
        day,
        {"inputs": {alias: one.tags for alias, one in plan.inputs.items()}},
        dagster_run,
        [ReportedInput(one.dataset, tag) for one in plan.inputs.values() for tag in one.tags],
    )
    reporter = Reporter(workspace)
    reporter.started(facts)
    if fails:
        reporter.failed(facts, Failure("it was told to"))
        return
    made = []
    with workspace.catalog.writing() as session:
        for one in plan.outputs.values():
            number = workspace.dataset_id(one.dataset, session)
            version = reserve_version(
                session, number, day, state=READY, produced_by_run_id=facts.run_id
            )
            made.append(ReportedOutput(one.dataset, version.version_tag))
    reporter.completed(facts, made)


@contextmanager
def open_night(folder: Path, floe_yaml: str, **more: Any) -> Iterator[Night]:
    """Write a project, and open it on an instance of its own."""
    site = load(make_project(folder, floe_yaml)).site
    try:
        with DagsterInstance.ephemeral() as instance:
            yield Night(site, instance, **more)
    finally:
        close_standing()
