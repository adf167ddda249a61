"""Plan a run: the versions it reads and will create, and its parameters.

A run for a business date reads the versions that its mappings select for that date, never one of
a later date. They are fixed here, before anything starts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from floe.catalog.processes import get_process
from floe.catalog.runs import get_run
from floe.catalog.tables import DatasetVersion
from floe.catalog.version_queries import get_version_of, last_ready, latest_ready
from floe.catalog.versions import peek_tag
from floe.errors import FloeError
from floe.execution.formats.contract import StoredVersion
from floe.execution.versions.version_access import stored_version
from floe.execution.workspace import UndeclaredError, Workspace
from floe.spec import ProcessSpec
from floe.spec.calendars import WEEKDAYS
from floe.spec.identity import default_business_date, floe_process, process_of_key
from floe.spec.nearby import suggest
from floe.spec.processes import EARLIER_DATES, Input, WriteMode

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

KINDS: tuple[tuple[type, Callable[[str], Any], str], ...] = (
    (int, int, "whole number"),
    (float, float, "number"),
    (date, date.fromisoformat, "date (YYYY-MM-DD)"),
)


class InputsMissingError(FloeError):
    """A process cannot run for a date, because input versions are missing."""

    def __init__(
        self, process: str, key: str, missing: Sequence[str], reasons: Sequence[str] = ()
    ) -> None:
        self.process, self.key, self.missing = process, key, tuple(missing)
        details = "".join(f" {reason.rstrip('.')}." for reason in reasons)
        super().__init__(f"'{process}' cannot run for {key}: {'; '.join(missing)}.{details}")

    def because(self, reasons: Mapping[str, str]) -> "InputsMissingError":
        """Return this error with the reasons for its missing datasets."""
        relevant = [
            f"{dataset}: {reason}"
            for dataset, reason in reasons.items()
            if any(f"'{dataset}'" in lack for lack in self.missing)
        ]
        return InputsMissingError(self.process, self.key, self.missing, relevant)


class UnknownParameterError(FloeError):
    """A parameter is not declared by the process."""

    def __init__(self, process: str, name: str, known: Sequence[str]) -> None:
        hint = suggest(name, list(known)) or f"Its parameters: {', '.join(known) or 'none'}."
        super().__init__(f"'{process}' has no parameter '{name}'. {hint}")


class InvalidParameterError(FloeError):
    """A parameter's value has the wrong type."""

    def __init__(self, name: str, value: str, kind: str) -> None:
        super().__init__(f"Parameter '{name}' must be a {kind}; got '{value}'.")


class NotRepeatableError(FloeError):
    """A run did not record which versions it read under which alias."""

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"Run {run_id} did not record which version each input read, so it cannot be repeated. "
            "Only runs of floe's own processes can be repeated."
        )


class OtherProcessError(FloeError):
    """A run cannot be repeated as a run of another process."""

    def __init__(self, run_id: str, process: str, other: str) -> None:
        super().__init__(f"Run {run_id} is a run of {other}, not of '{process}'.")


@dataclass(frozen=True)
class PlannedInput:
    """The versions that a run reads under an alias."""

    alias: str
    dataset: str
    versions: tuple[StoredVersion, ...]
    schema_hash: str | None = None
    rows: int | None = None

    @property
    def tags(self) -> list[str]:
        return [version.tag for version in self.versions]


@dataclass(frozen=True)
class PlannedOutput:
    """The version that a run will create under an alias."""

    alias: str
    dataset: str
    mode: WriteMode
    tag: str
    """The expected tag; a concurrent run may take it first."""


@dataclass(frozen=True)
class RunPlan:
    """Everything that is decided before a run starts."""

    process: str
    spec: ProcessSpec
    business_date: date
    partition: str | None
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, PlannedInput] = field(default_factory=dict)
    outputs: Mapping[str, PlannedOutput] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return self.partition or self.business_date.isoformat()


@dataclass(frozen=True)
class RunOptions:
    """The process to run, and for what."""

    process: str
    business_date: date | None = None
    partition: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    as_run: str | None = None
    """The run id whose input versions to read again."""


def plan_run(workspace: Workspace, options: RunOptions, *, whole: bool = True) -> RunPlan:
    """Decide what a run reads and writes. With `whole`, missing inputs are an error."""
    spec = process_spec(workspace, options.process)
    params = read_params(spec, options)
    with workspace.catalog.reading() as session:
        day = _date_of(session, workspace, options)
        key = options.partition or day.isoformat()
        pinned = (
            None
            if options.as_run is None
            else _pinned(session, workspace, options.process, options.as_run)
        )
        inputs, missing = {}, []
        for alias, process_input in spec.inputs.items():
            tags = None if pinned is None else pinned.get(alias, [])
            versions = (
                versions_for(session, workspace, process_input, day, options.partition)
                if tags is None
                else _versions_with_tags(session, workspace, process_input, tags)
            )
            if not versions and not process_input.optional:
                missing.append(_describe_missing(workspace, process_input, day))
            inputs[alias] = _planned(workspace, alias, process_input, versions)
        if missing and whole:
            raise InputsMissingError(options.process, key, missing)
        outputs = {
            alias: PlannedOutput(
                alias,
                output.dataset,
                output.write,
                peek_tag(
                    session, workspace.dataset_id(output.dataset, session), day, options.partition
                ),
            )
            for alias, output in spec.outputs.items()
        }
    return RunPlan(options.process, spec, day, options.partition, params, inputs, outputs)


@dataclass(frozen=True)
class PlannedSource:
    """An input that an earlier process of the same plan writes."""

    process: str
    tags: Sequence[str]


def find_planned_sources(plans: Sequence[RunPlan]) -> dict[tuple[str, str], PlannedSource]:
    """Return the inputs, by process and alias, that earlier plans of a list write.

    The process will read the new version, which supersedes the present one of the date.
    """
    writers: dict[str, tuple[str, str]] = {}
    from_plan: dict[tuple[str, str], PlannedSource] = {}
    for plan in plans:
        for alias, planned in plan.inputs.items():
            spec = plan.spec.inputs[alias]
            if planned.dataset in writers and spec.mapping not in EARLIER_DATES:
                process, tag = writers[planned.dataset]
                count = (spec.count or 1) if spec.mapping == "last" else 1
                before = [
                    version.tag
                    for version in planned.versions
                    if version.business_date != plan.business_date
                ]
                from_plan[plan.process, alias] = PlannedSource(process, [tag, *before][:count])
        for output in plan.outputs.values():
            writers[output.dataset] = plan.process, output.tag
    return from_plan


def process_spec(workspace: Workspace, name: str) -> ProcessSpec:
    """Return the declaration of a process in floe.yaml."""
    known = workspace.site.spec.processes
    if name not in known:
        raise UndeclaredError("process", name, list(known))
    return known[name]


def wanted_date(workspace: Workspace, process_input: Input, day: date) -> date | None:
    """Return the date whose version an input reads; None if any up to `day` will do."""
    if process_input.mapping == "same_date":
        return day
    if process_input.mapping == "previous_day":
        return day - timedelta(days=1)
    if process_input.mapping == "previous_business_day":
        name = process_input.calendar or workspace.site.spec.calendar or WEEKDAYS
        return workspace.site.spec.calendar_named(name).previous_business_day(day)
    return None


def off_day_warning(workspace: Workspace, process: str, day: date) -> str:
    """Return a warning if a date is not a business day of a process, else "".

    Uses the calendar of its SLA, else the project's. Without a calendar, every day counts.
    """
    spec = process_spec(workspace, process)
    name = (spec.sla and spec.sla.calendar) or workspace.site.spec.calendar
    if name is None or workspace.site.spec.calendar_named(name).is_business_day(day):
        return ""
    return f"{day} ({day:%A}) is not a business day in {name}, the calendar of '{process}'."


def _versions_with_tags(
    session: "Session", workspace: Workspace, process_input: Input, tags: Sequence[str]
) -> Sequence[DatasetVersion]:
    dataset_id = workspace.dataset_id(process_input.dataset, session)
    return [get_version_of(session, dataset_id, tag) for tag in tags]


def versions_for(
    session: "Session",
    workspace: Workspace,
    process_input: Input,
    day: date,
    partition: str | None = None,
) -> Sequence[DatasetVersion]:
    """Return the versions that an input reads for a date, never one of a later date.

    A run for a partition reads the same partition of the input, if the mapping names a date.
    """
    dataset_id = workspace.dataset_id(process_input.dataset, session)
    wanted = wanted_date(workspace, process_input, day)
    if wanted is not None:
        version = latest_ready(session, dataset_id, on=wanted, partition_key=partition)
        return [] if version is None else [version]
    since = None if process_input.max_age is None else day - process_input.max_age
    count = process_input.count if process_input.mapping == "last" else 1
    return last_ready(session, dataset_id, until=day, count=count or 1, since=since)


def _planned(
    workspace: Workspace, alias: str, process_input: Input, versions: Sequence[DatasetVersion]
) -> PlannedInput:
    counts = [version.row_count for version in versions]
    return PlannedInput(
        alias,
        process_input.dataset,
        tuple(stored_version(workspace, process_input.dataset, version) for version in versions),
        versions[0].schema_hash if versions else None,
        None if None in counts else sum(filter(None, counts)),
    )


def _describe_missing(workspace: Workspace, process_input: Input, day: date) -> str:
    wanted = wanted_date(workspace, process_input, day)
    when = f"for {wanted}" if wanted else f"up to {day}"
    origin = describe_origin(workspace, process_input.dataset)
    return f"'{process_input.dataset}' has no READY version {when} ({origin})"


def describe_origin(workspace: Workspace, dataset: str) -> str:
    """Name the processes or the team that a dataset comes from."""
    writers = writers_of(workspace, dataset)
    if writers:
        return f"written by {' and '.join(writers)}"
    owner = workspace.site.spec.owner_or_default(workspace.dataset(dataset).owner)
    return f"delivered by {owner.team}" if owner and owner.team else "delivered by another system"


def writers_of(workspace: Workspace, dataset: str) -> list[str]:
    """Return the processes of the project that write a dataset."""
    processes = workspace.site.spec.processes.items()
    return [
        name
        for name, process in processes
        if any(output.dataset == dataset for output in process.outputs.values())
    ]


def _date_of(session: "Session", workspace: Workspace, options: RunOptions) -> date:
    """Return the requested date, else that of the repeated run, else today."""
    if options.business_date is None and options.as_run is not None:
        repeated = get_run(session, options.as_run).business_date
        if repeated is not None:
            return repeated
    return options.business_date or default_business_date(workspace.site.spec.timezone)


def _pinned(
    session: "Session", workspace: Workspace, process: str, run_id: str
) -> Mapping[str, Sequence[str]]:
    run = get_run(session, run_id)
    key = get_process(session, run.process_id).process_key
    if process_of_key(key) != floe_process(workspace.site.spec.name, process):
        raise OtherProcessError(run_id, process, key)
    noted = (run.facets_json or {}).get("floe", {}).get("inputs")
    if not isinstance(noted, dict):
        raise NotRepeatableError(run_id)
    return noted


def read_params(spec: ProcessSpec, options: RunOptions) -> dict[str, Any]:
    """Return the declared parameters of a run, with the requested values."""
    params = dict(spec.params)
    for name, text in options.params.items():
        if name not in params:
            raise UnknownParameterError(options.process, name, list(params))
        params[name] = _parse_like(name, text, params[name])
    return params


def _parse_like(name: str, text: str, before: Any) -> Any:
    """Parse a value as the type of the declared default."""
    if isinstance(before, bool):
        if text.lower() not in ("true", "false"):
            raise InvalidParameterError(name, text, "boolean (true or false)")
        return text.lower() == "true"
    for kind, read, word in KINDS:
        if isinstance(before, kind):
            try:
                return read(text)
            except ValueError:
                raise InvalidParameterError(name, text, word) from None
    return text
